/**
 * Simulation of a socket group: a sender with lines of their own impairments, and the listener, with a clock of its own and
 * reproducible from the seed.
 *
 * @module
 */
import { Endpoint } from '../../src/srt/connection/endpoint.ts'
import { SocketGroups } from '../../src/srt/connection/socket-group.ts'
import type { SrtStats } from '../../src/srt/stats.ts'
import { addToSequence, sequenceDistance } from '../../src/srt/wire/counters.ts'
import { GroupType } from '../../src/srt/wire/extension.ts'
import { isControl, sequenceNumber } from '../../src/srt/wire/packet.ts'
import { GroupSender } from '../support/group-sender.ts'
import { Impairment, type LinkOptions } from '../support/impairment.ts'
import { createRandom } from '../support/random.ts'
import { ENDPOINT_OPTIONS } from './endpoint-options.ts'
import { claims, Timeline, Wire } from './simulator.ts'
import { SinkLedger } from './sink-ledger.ts'
import { wholeDatagram } from './whole-datagram.ts'

/** Times are from the first packet on. */
export interface SimulatedLine {
  readonly link: LinkOptions
  /** Time at which its caller calls; by default before the first packet. */
  readonly callsUs?: number
  /** Times from and until which nothing passes. */
  readonly darkUs?: readonly [from: number, until: number]
}

export interface GroupSimulationOptions {
  readonly seed: number
  /** A `GroupType`; default broadcast. In a backup group, the first line has the highest weight. */
  readonly type?: number
  readonly lines: readonly SimulatedLine[]
  readonly latencyMs: number
  readonly packets: number
  readonly intervalUs: number
  readonly initialSequenceNumber?: number
}

const TICK_US = 10_000
/** Time for the repair of the last packets, besides the latency. */
const DRAIN_US = 2_000_000
/** Max time that a datagram is on its way. */
const MAX_TRANSIT_US = 500_000
/** Numbers of lines are ports, which differ by this much with each call. */
const NEXT_CALL = 100

export function simulateGroup(options: GroupSimulationOptions) {
  const { seed, latencyMs, packets, intervalUs, initialSequenceNumber = 0 } = options
  const type = options.type ?? GroupType.BROADCAST
  const timeline = new Timeline()
  const { bytes } = createRandom(seed)
  const latencyUs = latencyMs * 1000
  /** Times at which the packets were sent. */
  const sentUs: number[] = []
  /** Numbers of the packets that came over any line. */
  const arrived = new Set<number>()
  let isClosed = false
  const sink = new SinkLedger({
    onGap: (first, lostPackets) => {
      for (let number = first; number < first + lostPackets; number++) {
        if (arrived.has(number))
          violations.push(`packet ${number} is lost, although a line brought it`)
        const isDue = timeline.nowUs >= sentUs[number]! + latencyUs
        if (!isDue && !isClosed)
          violations.push(`packet ${number} is dropped before its latency is over`)
      }
    },
  })
  const { violations } = sink
  /** Statistics shortly before the end. */
  let stats: SrtStats | undefined

  const endpoint: Endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    latencyMs,
    random: bytes,
    nowUs: 0,
    groups: { registry: new SocketGroups(bytes), localPort: 10_080 },
    host: {
      transmit: (sent, port) => lines[port % NEXT_CALL]!.handleAnswer(wholeDatagram(sent), port),
      request: (attempt) =>
        timeline.at(5000, () => endpoint.decide(attempt, { sink }, timeline.nowUs)),
      expire: () => {},
      fail: (error) => violations.push(String(error)),
    },
  })

  const sender = new GroupSender({
    ...{ type, groupId: 0x4b21c5e2, streamId: 'seeded', latencyMs, initialSequenceNumber },
    weights: options.lines.map((_, index) => options.lines.length - index),
    nowUs: 0,
    host: {
      dial: (index) => lines[index]!.dial(),
      send: (index, datagram) => lines[index]!.send(datagram),
    },
  })
  let beganUs = Infinity
  const lines = options.lines.map(({ link, darkUs = [0, 0] }, index) => {
    const forward = new Wire(timeline, new Impairment(seed + index, link))
    const backward = new Wire(timeline, new Impairment(~(seed + index), link))
    const isDark = () => {
      const timeUs = timeline.nowUs - beganUs
      return timeUs >= darkUs[0] && timeUs < darkUs[1]
    }
    /** Port of the latest call. */
    let port = index
    /** By port, the newest sequence number that reached the listener. */
    const highest = new Map<number, number>()
    return {
      dial() {
        port += NEXT_CALL
        highest.set(port, addToSequence(sender.lines[index]!.calledFrom, -1))
      },
      send(datagram: Buffer) {
        const from = port
        forward.carry(datagram, (copy) => {
          if (isDark()) return
          if (!isControl(copy)) {
            const sequence = sequenceNumber(copy)
            if (sequenceDistance(highest.get(from)!, sequence) > 0) highest.set(from, sequence)
            arrived.add(sequenceDistance(initialSequenceNumber, sequence))
          }
          endpoint.handleDatagram(copy, from, '192.0.2.1', timeline.nowUs)
        })
      },
      handleAnswer(datagram: Buffer, to: number) {
        const claimed = claims(datagram, highest.get(to))
        violations.push(...claimed.map((text) => `${text} on line ${index}`))
        backward.carry(datagram, (copy) => {
          if (!isDark()) sender.handleDatagram(index, copy, timeline.nowUs)
        })
      },
    }
  })

  const sendNext = () => {
    if (sentUs.length === packets) {
      timeline.at(latencyUs + DRAIN_US, close)
      return
    }
    const payload = Buffer.alloc(1316)
    payload.writeUInt32BE(sentUs.length)
    sentUs.push(timeline.nowUs)
    sender.push(payload, timeline.nowUs)
    timeline.at(intervalUs, sendNext)
  }
  const close = () => {
    // A call that is under way would open another group.
    const sinceUs = timeline.nowUs - MAX_TRANSIT_US
    const isQuiet = sender.lines.every(
      ({ state, isConnected, changedUs }) =>
        isConnected || (state === 'away' && changedUs < sinceUs),
    )
    if (!isQuiet) {
      timeline.at(TICK_US, close)
      return
    }
    stats = sink.connection?.stats()
    isClosed = true
    sender.close(timeline.nowUs)
  }
  const call = (index: number) => sender.call(index, timeline.nowUs)
  const isLate = (index: number) => options.lines[index]!.callsUs !== undefined
  const begin = () => {
    const isReady = sender.lines.every(({ index, isConnected }) => isConnected || isLate(index))
    if (!isReady) {
      timeline.at(TICK_US, begin)
      return
    }
    beganUs = timeline.nowUs
    options.lines.forEach(({ callsUs }, index) => {
      if (callsUs !== undefined) timeline.at(callsUs, () => call(index))
    })
    sendNext()
  }
  for (const { index } of sender.lines) if (!isLate(index)) call(index)
  begin()
  const tick = () => {
    sender.tick(timeline.nowUs)
    endpoint.tick(timeline.nowUs)
    if (!isClosed || endpoint.busy) timeline.at(TICK_US, tick)
  }
  tick()
  const limitUs = packets * intervalUs + 60_000_000
  timeline.run(limitUs)
  if (timeline.nowUs > limitUs) violations.push('it never ends')
  for (const number of arrived)
    if (number >= sink.position)
      violations.push(`packet ${number} arrived, and neither came nor is dropped`)
  const { pushed, gaps, opened, endReason: end } = sink
  return { pushed, gaps, end, opened, violations, stats }
}
