/**
 * Simulation of a broadcast group: several callers send the same packets over lines of their own, with a clock of its own
 * and reproducible from the seed.
 *
 * @module
 */
import { Call } from '../../src/srt/connection/call.ts'
import { Endpoint } from '../../src/srt/connection/endpoint.ts'
import { SocketGroups } from '../../src/srt/connection/socket-group.ts'
import type { SrtStats } from '../../src/srt/stats.ts'
import { encodeGroupExtension, GroupType } from '../../src/srt/wire/extension.ts'
import { ExtensionFlag, HandshakeType } from '../../src/srt/wire/handshake.ts'
import {
  ControlType,
  controlType,
  HEADER_BYTES,
  isControl,
  sequenceNumber,
} from '../../src/srt/wire/packet.ts'
import { addToSequence, sequenceDistance } from '../../src/srt/wire/counters.ts'
import { Impairment, type LinkOptions } from '../support/impairment.ts'
import { createRandom } from '../support/random.ts'
import { ENDPOINT_OPTIONS } from './endpoint-options.ts'
import { claims, Timeline, Wire } from './simulator.ts'
import { SinkLedger } from './sink-ledger.ts'
import { wholeDatagram } from './whole-datagram.ts'

export interface SimulatedLine {
  readonly link: LinkOptions
  /** Time at which its caller calls; default 0. */
  readonly callsUs?: number
  /** Times from and until which nothing passes. */
  readonly darkUs?: readonly [from: number, until: number]
}

interface GroupSimulationOptions {
  readonly seed: number
  readonly lines: readonly SimulatedLine[]
  readonly latencyMs: number
  readonly packets: number
  readonly intervalUs: number
  readonly initialSequenceNumber?: number
}

const TICK_US = 10_000
const GROUP_ID = 0x4b21c5e2

export function simulateGroup(options: GroupSimulationOptions) {
  const { seed, latencyMs, packets, intervalUs, initialSequenceNumber = 0 } = options
  const timeline = new Timeline()
  const { bytes } = createRandom(seed)
  const sink = new SinkLedger()
  const { violations } = sink
  /** Statistics shortly before the callers close. */
  let stats: SrtStats | undefined

  const endpoint: Endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    latencyMs,
    random: bytes,
    nowUs: 0,
    groups: { registry: new SocketGroups(bytes), localPort: 10_080 },
    host: {
      transmit: (sent, port) => lines[port]!.handleAnswer(wholeDatagram(sent)),
      request: (attempt) =>
        timeline.at(5000, () => endpoint.decide(attempt, { sink }, timeline.nowUs)),
      expire: () => {},
      fail: (error) => violations.push(String(error)),
    },
  })

  let sent = 0
  const lines = [
    // Port 0 is none.
    undefined,
    ...options.lines.map((line, index) => createLine(line, index + 1)),
  ]

  function createLine({ link, callsUs = 0, darkUs = [0, 0] }: SimulatedLine, port: number) {
    const forward = new Wire(timeline, new Impairment(seed + port, link))
    const backward = new Wire(timeline, new Impairment(~(seed + port), link))
    const isDark = () => timeline.nowUs >= darkUs[0] && timeline.nowUs < darkUs[1]
    /** The newest sequence number that reached the listener over this line. */
    let highest: number | undefined
    let call: Call | undefined
    /** Number of the next packet to send over this line. */
    let next = 0
    const arrive = (datagram: Buffer) => {
      if (isDark()) return
      if (!isControl(datagram)) {
        const sequence = sequenceNumber(datagram)
        if (highest === undefined || sequenceDistance(highest, sequence) > 0) highest = sequence
      }
      endpoint.handleDatagram(datagram, port, '192.0.2.1', timeline.nowUs)
    }
    timeline.at(callsUs, () => {
      next = sent
      call = new Call({
        remoteAddress: '192.0.2.2',
        remotePort: 10_080,
        socketId: port,
        streamId: 'seeded',
        latencyMs,
        peerLatencyMs: latencyMs,
        initialSequenceNumber: addToSequence(initialSequenceNumber, sent),
        startTimestampUs: timeline.nowUs,
        sendBufferPackets: 8192,
        maxBandwidthBps: 1e9,
        connectTimeoutUs: 3_000_000,
        idleTimeoutUs: 5_000_000,
        host: {
          transmit: (datagram) => forward.carry(asMember(wholeDatagram(datagram)), arrive),
          connected: () => {
            line.isConnected = true
            line.send()
          },
          refused: (error) => violations.push(error.message),
          ended: () => (line.isConnected = false),
          fail: (error) => violations.push(String(error)),
        },
      })
      call.start(timeline.nowUs)
    })
    const line = {
      isConnected: false,
      handleAnswer(datagram: Buffer) {
        const claimed = claims(datagram, highest ?? addToSequence(initialSequenceNumber, sent - 1))
        violations.push(...claimed.map((text) => `${text} on line ${port}`))
        backward.carry(datagram, (copy) => {
          if (!isDark()) call?.handleDatagram(copy, timeline.nowUs)
        })
      },
      /** Sends all that is due: first what was sent over other lines while this one was connecting. */
      send() {
        for (; this.isConnected && next < sent; next++) {
          const payload = Buffer.alloc(1316)
          payload.writeUInt32BE(next)
          call?.send(payload, timeline.nowUs)
        }
      },
      tick: () => call?.tick(timeline.nowUs),
      close: () => call?.close(),
    }
    return line
  }

  const members = () => lines.filter((line) => line !== undefined)
  const sendNext = () => {
    if (sent === packets) {
      stats = sink.connection?.stats()
      for (const line of members()) line.close()
      return
    }
    sent++
    for (const line of members()) line.send()
    timeline.at(intervalUs, sendNext)
  }
  const begin = () => {
    const isReady = members().every(
      (line, index) => line.isConnected || options.lines[index]!.callsUs !== undefined,
    )
    if (isReady) sendNext()
    else timeline.at(TICK_US, begin)
  }
  begin()
  const tick = () => {
    for (const line of members()) line.tick()
    endpoint.tick(timeline.nowUs)
    if (sent < packets || endpoint.busy) timeline.at(TICK_US, tick)
  }
  tick()
  const limitUs = packets * intervalUs + 30_000_000
  timeline.run(limitUs)
  if (timeline.nowUs > limitUs) violations.push('it never ends')
  const { pushed, gaps, opened, endReason: end } = sink
  return { pushed, gaps, end, opened, violations, stats }
}

/** Adds the membership of a broadcast group to a conclusion; other datagrams stay as they are. */
export function asMember(datagram: Buffer): Buffer {
  if (!isControl(datagram) || controlType(datagram) !== ControlType.HANDSHAKE) return datagram
  if (datagram.readInt32BE(HEADER_BYTES + 20) !== HandshakeType.CONCLUSION) return datagram
  const group = { groupId: GROUP_ID, type: GroupType.BROADCAST, weight: 1 }
  const whole = Buffer.concat([datagram, encodeGroupExtension(group)])
  whole.writeUInt16BE(whole.readUInt16BE(HEADER_BYTES + 6) | ExtensionFlag.CONFIG, HEADER_BYTES + 6)
  return whole
}
