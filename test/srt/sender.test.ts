import * as fc from 'fast-check'
import t from 'tap'
import { addToSequence, sequenceDistance } from '../../src/binary/sequence-number.ts'
import { RttEstimator } from '../../src/srt/rtt.ts'
import { Sender } from '../../src/srt/sender.ts'
import { Transmitter } from '../../src/srt/transmitter.ts'
import {
  ControlType,
  controlType,
  HEADER_BYTES,
  isControl,
  isRetransmitted,
  messageNumber,
  sequenceNumber,
  timestampUs,
  typeSpecificInformation,
} from '../../src/srt/wire/packet.ts'

interface Options {
  first?: number
  bufferPackets?: number
  peerWindowPackets?: number
  peerLatencyMs?: number
  maxBandwidthBps?: number
}

/** A sender and what it lets out. */
function createSender(options: Options = {}) {
  const sent: { sequence: number; again: boolean; timestampUs: number; payload: string }[] = []
  const controls: Buffer[] = []
  const rtt = new RttEstimator()
  const sender = new Sender({
    initialSequenceNumber: options.first ?? 0,
    bufferPackets: options.bufferPackets ?? 64,
    peerWindowPackets: options.peerWindowPackets ?? 8192,
    peerLatencyUs: (options.peerLatencyMs ?? 120) * 1000,
    maxBandwidthBps: options.maxBandwidthBps ?? 1e9,
    rtt,
    transmitter: new Transmitter({
      peerSocketId: 1,
      startUs: 0,
      startTimestampUs: 0,
      nowUs: 0,
      send: (datagram) => {
        if (isControl(datagram)) controls.push(Buffer.from(datagram))
        else {
          sent.push({
            sequence: sequenceNumber(datagram),
            again: isRetransmitted(datagram),
            timestampUs: timestampUs(datagram),
            payload: datagram.toString('latin1', HEADER_BYTES),
          })
        }
      },
    }),
  })
  return {
    sender,
    rtt,
    controls,
    push: (payload: string, nowUs = 0) => sender.push(Buffer.from(payload, 'latin1'), nowUs),
    take: () => sent.splice(0),
    /** Sequence numbers of what was let out since the last call. */
    takeSequences: () => sent.splice(0).map(({ sequence }) => sequence),
  }
}

const ack = (nextExpected: number, freePackets = 8192, rttUs = 20_000) => ({
  nextExpected,
  report: { rttUs, rttVarianceUs: 1000, freePackets },
})

t.test('payloads leave at once, numbered and stamped (3.1)', async (t) => {
  const { push, take } = createSender({ first: 0x7fffffff })
  t.ok(push('one', 1000))
  t.ok(push('two', 2500))
  t.strictSame(take(), [
    { sequence: 0x7fffffff, again: false, timestampUs: 1000, payload: 'one' },
    { sequence: 0, again: false, timestampUs: 2500, payload: 'two' },
  ])
})

t.test('messages are counted from 1, and time from where it is told to begin', async (t) => {
  const messages: [number, number][] = []
  const sender = new Sender({
    initialSequenceNumber: 0,
    bufferPackets: 8,
    peerWindowPackets: 8,
    peerLatencyUs: 0,
    maxBandwidthBps: 1e9,
    rtt: new RttEstimator(),
    transmitter: new Transmitter({
      peerSocketId: 1,
      startUs: 1000,
      startTimestampUs: 2 ** 32 - 500,
      nowUs: 1000,
      send: (datagram) => messages.push([messageNumber(datagram), timestampUs(datagram)]),
    }),
  })
  sender.push(Buffer.alloc(1), 1200)
  sender.push(Buffer.alloc(1), 1700)
  t.strictSame(messages, [
    [1, 2 ** 32 - 300],
    [2, 200],
  ])
})

t.test('the payload may be reused by whoever handed it in', async (t) => {
  const { sender, push, take } = createSender()
  const payload = Buffer.from('first')
  sender.push(payload, 0)
  payload.write('other')
  push('x')
  sender.handleNak([{ first: 0, last: 0 }], 100_000)
  t.strictSame(
    take().map((packet) => packet.payload),
    ['first', 'x', 'first'],
  )
})

t.test('lost packets are sent again, marked, with their first timestamp (4.8.2)', async (t) => {
  const { sender, push, take } = createSender()
  for (const text of ['a', 'b', 'c', 'd']) push(text, 5000)
  take()
  sender.handleNak([{ first: 1, last: 2 }], 60_000)
  t.strictSame(take(), [
    { sequence: 1, again: true, timestampUs: 5000, payload: 'b' },
    { sequence: 2, again: true, timestampUs: 5000, payload: 'c' },
  ])
  t.match(sender.counters, { lost: 2, retransmitted: 2, packets: 6, bytes: 6 })
})

t.test('a packet is sent again at most once per RTT', async (t) => {
  const { sender, push, takeSequences } = createSender()
  push('a')
  push('b')
  sender.handleAck(ack(0), 1, 20_000)
  takeSequences()
  sender.handleNak([{ first: 0, last: 0 }], 30_000)
  sender.handleNak([{ first: 0, last: 0 }], 49_999)
  t.strictSame(takeSequences(), [0])
  sender.handleNak([{ first: 0, last: 0 }], 50_000)
  t.strictSame(takeSequences(), [0])
})

t.test('requests beyond what is in flight are clipped', async (t) => {
  const { sender, push, takeSequences } = createSender({ first: 0x7ffffffe })
  for (const text of ['a', 'b', 'c', 'd']) push(text)
  sender.handleAck(ack(0x7fffffff), 1, 10_000)
  takeSequences()
  sender.handleNak([{ first: 0x70000000, last: 0x0fffffff }], 60_000)
  t.strictSame(takeSequences(), [0x7fffffff, 0, 1])
  sender.handleNak([{ first: 2, last: 500 }], 100_000)
  sender.handleNak([{ first: 0x7ffffff0, last: 0x7ffffffe }], 100_000)
  t.strictSame(takeSequences(), [])
})

t.test('one report buys one pass over the flight, however often it repeats itself', async (t) => {
  const { sender, push, takeSequences } = createSender({ bufferPackets: 8192 })
  for (let i = 0; i < 4000; i++) push('x')
  takeSequences()
  sender.handleNak(
    Array.from({ length: 180 }, () => ({ first: 0, last: 3999 })),
    200_000,
  )
  t.equal(sender.counters.lost, 4000)
})

t.test('an ACK releases, and its report sets RTT and window (3.2.4)', async (t) => {
  const { sender, rtt, push, controls } = createSender()
  push('a')
  push('b')
  sender.handleAck(ack(1, 100, 7000), 3, 10_000)
  t.equal(sender.flightPackets, 1)
  t.strictSame([rtt.rttUs, rtt.varianceUs], [7000, 1000])
  t.strictSame(controls.map(controlType), [ControlType.ACKACK])
  t.equal(typeSpecificInformation(controls[0]!), 3)
  sender.handleAck({ nextExpected: 2 }, 0, 11_000)
  t.notOk(sender.busy)
  t.equal(controls.length, 1, 'a light ACK is not answered')
})

t.test('an ACK of what was never sent changes nothing', async (t) => {
  const { sender, push, controls } = createSender()
  push('a')
  sender.handleAck(ack(2), 1, 10_000)
  sender.handleAck(ack(0x30000000), 2, 10_000)
  t.equal(sender.flightPackets, 1)
  t.strictSame(controls, [])
})

t.test("the peer's window holds back what it has no room for", async (t) => {
  const { sender, push, takeSequences } = createSender({ peerWindowPackets: 2 })
  for (const text of ['a', 'b', 'c', 'd']) push(text)
  t.strictSame(takeSequences(), [0, 1])
  sender.handleAck({ nextExpected: 1 }, 0, 10_000)
  t.strictSame(takeSequences(), [], 'a light ACK says nothing about room')
  sender.handleAck(ack(2, 1), 1, 10_000)
  t.strictSame(takeSequences(), [2])
  sender.handleAck(ack(3, 5), 2, 20_000)
  t.strictSame(takeSequences(), [3])
})

t.test('a full buffer refuses, and takes again once there is room', async (t) => {
  const { sender, push } = createSender({ bufferPackets: 4 })
  for (const text of ['a', 'b', 'c', 'd']) t.ok(push(text))
  t.notOk(push('e'))
  t.equal(sender.counters.refused, 1)
  sender.handleAck(ack(1), 1, 10_000)
  t.ok(push('e'))
})

t.test('what nobody waits for any more is dropped, sent or not (4.6)', async (t) => {
  const { sender, push, takeSequences } = createSender({ peerWindowPackets: 1 })
  push('a', 0)
  push('b', 0)
  push('c', 500_000)
  t.strictSame(takeSequences(), [0])
  sender.tick(1_019_000)
  t.equal(sender.counters.dropped, 0)
  takeSequences()
  sender.tick(1_020_000)
  t.equal(sender.counters.dropped, 2)
  t.strictSame(takeSequences(), [2], 'and what is not late takes its place')
})

t.test("a packet is kept for the peer's latency where that is longer", async (t) => {
  const { sender, push } = createSender({ peerLatencyMs: 3000 })
  push('a')
  sender.tick(3_019_000)
  t.ok(sender.busy)
  sender.tick(3_020_000)
  t.notOk(sender.busy)
})

t.test('a burst leaves at the pace of the bandwidth, 10 ms at a time (5.1)', async (t) => {
  // 1372 bytes on the wire are 1.3 ms at 8.4 Mbit/s.
  const { sender, push, takeSequences } = createSender({ maxBandwidthBps: 8_400_000 })
  for (let i = 0; i < 40; i++) push('x'.repeat(1328), 0)
  t.equal(takeSequences().length, 8)
  sender.tick(10_000)
  t.equal(takeSequences().length, 8)
  for (let nowUs = 20_000; nowUs <= 50_000; nowUs += 10_000) sender.tick(nowUs)
  t.equal(takeSequences().length, 24)
})

t.test('the last packet leaves again until somebody has heard of it', async (t) => {
  const { sender, push, takeSequences, rtt } = createSender()
  for (const text of ['a', 'b']) push(text, 0)
  takeSequences()
  const afterUs = rtt.answerUs + 60_000
  sender.tick(afterUs - 1)
  t.strictSame(takeSequences(), [])
  sender.tick(afterUs)
  t.strictSame(takeSequences(), [1])
  sender.tick(afterUs + 10_000)
  t.strictSame(takeSequences(), [])
  sender.tick(2 * afterUs)
  t.strictSame(takeSequences(), [1])
  sender.handleAck(ack(2), 1, 2 * afterUs + 10_000)
  sender.tick(4 * afterUs)
  t.strictSame(takeSequences(), [])
})

t.test('it is done when the peer has everything and has had the time to play it', async (t) => {
  const { sender, push } = createSender({ peerLatencyMs: 300 })
  t.ok(sender.isDone(0))
  push('a', 1_000_000)
  t.notOk(sender.isDone(9_000_000), 'not acknowledged')
  sender.handleAck(ack(1, 8192, 20_000), 1, 1_030_000)
  t.notOk(sender.isDone(1_339_000))
  t.ok(sender.isDone(1_340_000), 'RTT, latency, and a little more')
})

t.test('losses leave before what is new', async (t) => {
  const { sender, push, takeSequences } = createSender({ maxBandwidthBps: 1_000_000 })
  for (let i = 0; i < 4; i++) push('x'.repeat(1000), 0)
  t.strictSame(takeSequences(), [0, 1])
  sender.handleNak([{ first: 0, last: 0 }], 1000)
  for (let nowUs = 10_000; nowUs <= 40_000; nowUs += 10_000) sender.tick(nowUs)
  t.strictSame(takeSequences(), [0, 2, 3])
})

t.test('survives whatever ACKs and NAKs an enemy thinks of', async (t) => {
  const first = 0x7fffff00
  const offset = fc.oneof(fc.integer({ min: -300, max: 600 }), fc.integer())
  const step = fc.oneof(
    fc.record({ push: fc.constant(true) }),
    fc.record({ ack: offset, window: fc.integer({ min: 0, max: 0xffffffff }) }),
    fc.record({ nakFrom: offset, more: fc.nat(0x3fffffff) }),
    fc.record({ waitUs: fc.integer({ min: 0, max: 400_000 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { sender, push, take } = createSender({ first, bufferPackets: 64 })
      let nowUs = 0
      let next = first
      for (const one of steps) {
        if ('push' in one && push('x', nowUs)) next = addToSequence(next, 1)
        if ('ack' in one) sender.handleAck(ack(addToSequence(first, one.ack), one.window), 1, nowUs)
        if ('nakFrom' in one) {
          const from = addToSequence(first, one.nakFrom)
          sender.handleNak([{ first: from, last: addToSequence(from, one.more) }], nowUs)
        }
        if ('waitUs' in one) sender.tick((nowUs += one.waitUs))
        for (const { sequence } of take()) {
          if (sequenceDistance(sequence, next) <= 0) throw new Error('sent what was never given')
        }
        if (sender.keptPackets > 64 || sender.flightPackets > sender.keptPackets) {
          throw new Error('kept too much')
        }
      }
    }),
    { numRuns: 500 },
  )
  t.pass()
})
