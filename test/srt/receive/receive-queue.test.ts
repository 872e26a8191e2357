/**
 * Receivers that share a queue, as members of a socket group do, against a naive model.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { ReceiveQueue } from '../../../src/srt/receive/receive-queue.ts'
import { Receiver } from '../../../src/srt/receive/receiver.ts'
import { RttEstimator } from '../../../src/srt/rtt-estimator.ts'
import { Transmitter } from '../../../src/srt/transmitter.ts'
import { decodeAck } from '../../../src/srt/wire/ack.ts'
import { addToSequence, sequenceDistance } from '../../../src/srt/wire/counters.ts'
import { decodeLossList } from '../../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  controlType,
  HEADER_BYTES,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import { wholeDatagram } from '../whole-datagram.ts'

const LATENCY_US = 120_000
const TICK_US = 10_000
const PACKET_US = 1000

interface Arrival {
  readonly line: number
  readonly number: number
  /** Time from its sending to its arrival. */
  readonly transitUs: number
}

/** What a peer that sends packet n at n ms, and nothing again, gets delivered. */
class Model {
  readonly delivered: (number | string)[] = []
  readonly held = new Set<number>()
  next = 0

  arrive(number: number): void {
    if (number < this.next) return
    this.held.add(number)
    this.#deliver()
  }

  tick(nowUs: number): void {
    while (this.held.size > 0) {
      const first = Math.min(...this.held)
      if (first * PACKET_US + LATENCY_US > nowUs) return
      this.delivered.push(`gap ${first - this.next}`)
      this.next = first
      this.#deliver()
    }
  }

  #deliver(): void {
    for (; this.held.delete(this.next); this.next++) this.delivered.push(this.next)
  }
}

/** @param join  for each line, the number of arrivals after which it joins; the first line is there from the start */
function run(first: number, arrivals: readonly Arrival[], join: readonly number[]) {
  const delivered: (number | string)[] = []
  const queue = new ReceiveQueue({
    initialSequenceNumber: first,
    delivery: { handshakeTimestampUs: 0, handshakeArrivedUs: 0, latencyUs: LATENCY_US },
    windowPackets: 1024,
    sink: {
      push: (payload) => delivered.push(payload.readUInt32BE()),
      gap: (lostPackets) => delivered.push(`gap ${lostPackets}`),
    },
    nowUs: 0,
  })
  const model = new Model()
  const highest = new Map<number, number>()
  const claims: string[] = []
  const numberOf = (sequence: number) => sequenceDistance(first, sequence)
  const check = (line: number, datagram: Buffer) => {
    const top = highest.get(line) ?? -1
    const ack = controlType(datagram) === ControlType.ACK ? decodeAck(datagram) : undefined
    if (ack && numberOf(ack.nextExpected) > Math.min(top + 1, model.next))
      claims.push(`line ${line} acknowledges ${numberOf(ack.nextExpected)}`)
    const losses = controlType(datagram) === ControlType.NAK ? decodeLossList(datagram)! : []
    for (const { first: from, last } of losses) {
      for (let number = numberOf(from); number <= numberOf(last); number++) {
        const isMissing = number >= model.next && !model.held.has(number) && number < top
        if (!isMissing) claims.push(`line ${line} reports ${number}`)
      }
    }
  }
  const lines = new Map<number, Receiver>()
  const connect = (line: number, nowUs: number) => {
    const transmitter = new Transmitter({
      peerSocketId: 1,
      ...{ startUs: 0, startTimestampUs: 0, nowUs },
      send: (datagram) => check(line, wholeDatagram(datagram)),
    })
    const receiver = new Receiver({
      initialSequenceNumber: addToSequence(first, model.next + (line === 0 ? 0 : 20)),
      ...{ windowPackets: 1024, queue, latencyUs: LATENCY_US },
      ...{ eagerNak: true, isBonded: false, marksRetransmissions: true, nowUs },
      progress: { behind: false, mayHaveWaited: () => false },
      rtt: new RttEstimator(),
      transmitter,
    })
    lines.set(line, receiver)
  }
  const timed = arrivals
    .map((arrival) => ({ ...arrival, atUs: arrival.number * PACKET_US + arrival.transitUs }))
    .toSorted((a, b) => a.atUs - b.atUs)
  let tickUs = 0
  const tick = (untilUs: number) => {
    for (; tickUs <= untilUs; tickUs += TICK_US) {
      model.tick(tickUs)
      for (const receiver of lines.values()) receiver.tick(tickUs)
    }
  }
  timed.forEach(({ line, number, atUs }, index) => {
    tick(atUs)
    join.forEach((after, each) => {
      if (!lines.has(each) && (each === 0 || index >= after)) connect(each, atUs)
    })
    const receiver = lines.get(line)
    if (receiver === undefined) return
    const sequence = addToSequence(first, number)
    const datagram = Buffer.alloc(HEADER_BYTES + 4)
    const timestampUs = number * PACKET_US
    writeDataHeader(datagram, { sequence, message: 1, timestampUs, socketId: 1 })
    datagram.writeUInt32BE(number, HEADER_BYTES)
    model.arrive(number)
    highest.set(line, Math.max(highest.get(line) ?? -1, number))
    receiver.handleData(datagram, atUs)
  })
  tick(tickUs + LATENCY_US)
  return { delivered, expected: model.delivered, claims }
}

t.test(
  'delivers what any line brings in time, in order and once; no line claims what it has not',
  async (t) => {
    const arrival = fc.record({
      line: fc.nat(2),
      number: fc.nat(150),
      transitUs: fc.integer({ min: 0, max: 200_000 }),
    })
    const arrivals = fc.array(arrival, { maxLength: 300 })
    const join = fc.tuple(fc.constant(0), fc.nat(100), fc.nat(200))
    const firsts = fc.constantFrom(0, 0x7fffffff - 60)
    fc.assert(
      fc.property(firsts, arrivals, join, (first, all, after) => {
        const { delivered, expected, claims } = run(first, all, after)
        return claims.length === 0 && JSON.stringify(delivered) === JSON.stringify(expected)
      }),
      { numRuns: 300 },
    )
    t.pass()
  },
)
