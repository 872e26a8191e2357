/**
 * Simulation of a caller behind a sender of SRTLA, lines of a bad network, and a listener, with a clock of its own.
 *
 * @module
 */
import { Call } from '../../../src/srt/connection/call.ts'
import { Endpoint } from '../../../src/srt/connection/endpoint.ts'
import { SrtlaReceiver } from '../../../src/srt/srtla/srtla-receiver.ts'
import type { LineStats, SrtlaStats, SrtStats } from '../../../src/srt/stats.ts'
import { decodeLossList } from '../../../src/srt/wire/loss-list.ts'
import { sequenceDistance } from '../../../src/srt/wire/counters.ts'
import {
  ControlType,
  controlType,
  isControl,
  isRetransmitted,
} from '../../../src/srt/wire/packet.ts'
import { Impairment, type LinkOptions } from '../../support/impairment.ts'
import { createRandom } from '../../support/random.ts'
import { SrtlaSender } from '../../support/srtla-sender.ts'
import { Timeline, Wire } from '../simulator.ts'
import { SinkLedger } from '../sink-ledger.ts'
import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { wholeDatagram } from '../whole-datagram.ts'

export interface SimulatedLine extends LinkOptions {
  /** Seconds in which nothing passes. */
  readonly dark?: readonly [fromSec: number, toSec: number]
  /** Second from which on a NAT sends from another port, and passes nothing back to the old one. */
  readonly rebindsAtSec?: number
}

interface BondedOptions {
  readonly seed: number
  readonly lines: readonly SimulatedLine[]
  readonly latencyMs: number
  readonly packets: number
  readonly intervalUs: number
  /** Whether the receiver reports losses as to a caller without lines. */
  readonly isPlain?: boolean
}

interface BondedOutcome {
  readonly pushed: number
  readonly gaps: number
  readonly end: string | undefined
  readonly violations: readonly string[]
  readonly receiver: SrtStats
  /** Lines of the connection before its end. */
  readonly lines: readonly LineStats[]
  readonly srtla: SrtlaStats
  /** Packets that NAKs have named, repetitions included, and retransmissions of the caller. */
  readonly reported: number
  readonly retransmitted: number
  readonly refusals: readonly number[]
  /** Remote addresses of the connection. */
  readonly remote: string
}

const TICK_US = 10_000

export function simulateBonded(options: BondedOptions): BondedOutcome {
  const timeline = new Timeline()
  const { bytes } = createRandom(options.seed)
  const counts = { reported: 0, retransmitted: 0 }
  let lines: readonly LineStats[] = []

  const wires = options.lines.map((line, index) => ({
    ...line,
    forward: new Wire(timeline, new Impairment(options.seed * 10 + index, line)),
    backward: new Wire(timeline, new Impairment(~(options.seed * 10 + index), line)),
  }))
  const portOf = (index: number) => {
    const { rebindsAtSec = Infinity } = wires[index]!
    return 40_000 + index + (timeline.nowUs >= rebindsAtSec * 1e6 ? 100 : 0)
  }
  const isDark = (index: number) => {
    const [fromSec, toSec] = wires[index]!.dark ?? [Infinity, Infinity]
    return timeline.nowUs >= fromSec * 1e6 && timeline.nowUs < toSec * 1e6
  }

  const sink = new SinkLedger({
    onPush: (number) => {
      if (number === options.packets - 1) lines = sink.connection!.stats().lines ?? []
    },
  })
  const { violations } = sink

  const receiver = new SrtlaReceiver({
    random: bytes,
    host: {
      send: (datagram, port) => {
        const index = (port - 40_000) % 100
        if (isDark(index) || port !== portOf(index)) return
        wires[index]!.backward.carry(Buffer.from(datagram), (copy) =>
          sender.handleReceiver(index, copy, timeline.nowUs),
        )
      },
      deliver: (...packet) => endpoint.handleDatagram(...packet),
      isInUse: (port, address) => endpoint.isConnected(port, address),
    },
  })
  const endpoint: Endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    latencyMs: options.latencyMs,
    random: bytes,
    nowUs: 0,
    ...(options.isPlain !== true && {
      linesOf: (port: number, address: string) => receiver.linesOf(port, address),
    }),
    host: {
      transmit: (packet, port, address) => {
        const datagram = wholeDatagram(packet)
        if (isControl(datagram) && controlType(datagram) === ControlType.NAK) {
          for (const { first, last } of decodeLossList(datagram)!)
            counts.reported += sequenceDistance(first, last) + 1
        }
        receiver.transmit(datagram, port, address)
      },
      request: (attempt) =>
        timeline.at(0, () => endpoint.decide(attempt, { sink }, timeline.nowUs)),
      expire: () => {},
      fail: (error) => violations.push(String(error)),
    },
  })
  const sender: SrtlaSender = new SrtlaSender(wires.length, bytes, {
    send: (index, datagram) => {
      if (isDark(index)) return
      wires[index]!.forward.carry(Buffer.from(datagram), (copy) =>
        receiver.handleDatagram(copy, portOf(index), `192.0.2.${index + 1}`, timeline.nowUs),
      )
    },
    deliver: (datagram) => call.handleDatagram(datagram, timeline.nowUs),
  })

  let sent = 0
  let over = false
  const sendNext = () => {
    if (over) return
    if (sent === options.packets) {
      call.close()
      return
    }
    const payload = Buffer.alloc(1316)
    payload.writeUInt32BE(sent++)
    if (!call.send(payload, timeline.nowUs)) violations.push('the send buffer is full')
    timeline.at(options.intervalUs, sendNext)
  }
  const call: Call = new Call({
    remoteAddress: '192.0.2.100',
    remotePort: 5000,
    socketId: 77,
    streamId: 'bonded',
    latencyMs: options.latencyMs,
    peerLatencyMs: options.latencyMs,
    initialSequenceNumber: 2 ** 31 - 5000,
    startTimestampUs: 0,
    sendBufferPackets: 8192,
    maxBandwidthBps: 1e9,
    connectTimeoutUs: 10_000_000,
    idleTimeoutUs: 10_000_000,
    host: {
      transmit: (packet) => {
        const datagram = wholeDatagram(packet)
        if (!isControl(datagram) && isRetransmitted(datagram)) counts.retransmitted++
        sender.handleCaller(datagram, timeline.nowUs)
      },
      connected: sendNext,
      refused: (error) => {
        over = true
        violations.push(error.message)
      },
      ended: () => (over = true),
      fail: (error) => violations.push(String(error)),
    },
  })

  call.start(0)
  const tick = () => {
    sender.tick(timeline.nowUs)
    call.tick(timeline.nowUs)
    endpoint.tick(timeline.nowUs)
    receiver.tick(timeline.nowUs)
    if (!over || endpoint.busy) timeline.at(TICK_US, tick)
  }
  tick()
  timeline.run(options.packets * options.intervalUs + 30_000_000)

  const connection = sink.connection!
  return {
    ...counts,
    pushed: sink.pushed,
    gaps: sink.gaps,
    end: sink.endReason,
    violations,
    receiver: connection.stats(),
    lines,
    srtla: receiver.stats,
    refusals: sender.refusals,
    remote: `${connection.remoteAddress}:${connection.remotePort}`,
  }
}
