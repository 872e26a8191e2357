import * as fc from 'fast-check'
import t from 'tap'
import { addToSequence, sequenceDistance } from '../../../src/srt/wire/counters.ts'
import { RttEstimator } from '../../../src/srt/rtt-estimator.ts'
import { Sender } from '../../../src/srt/send/sender.ts'
import { Transmitter, type Datagram } from '../../../src/srt/transmitter.ts'
import { decodeDropRequest } from '../../../src/srt/wire/drop-request.ts'
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
} from '../../../src/srt/wire/packet.ts'
import { wholeDatagram } from '../whole-datagram.ts'

interface Options {
  first?: number
  bufferPackets?: number
  peerWindowPackets?: number
  peerLatencyMs?: number
  peerRepeatsNaks?: boolean
  maxBandwidthBps?: number
}

/** Sender with its sent datagrams. */
function createSender(options: Options = {}) {
  const sent: { sequence: number; again: boolean; timestampUs: number; payload: string }[] = []
  const controls: Buffer[] = []
  const rtt = new RttEstimator()
  const sender = new Sender({
    initialSequenceNumber: options.first ?? 0,
    bufferPackets: options.bufferPackets ?? 64,
    peerWindowPackets: options.peerWindowPackets ?? 8192,
    peerLatencyUs: (options.peerLatencyMs ?? 120) * 1000,
    peerRepeatsNaks: options.peerRepeatsNaks ?? true,
    maxBandwidthBps: options.maxBandwidthBps ?? 1e9,
    rtt,
    transmitter: new Transmitter({
      peerSocketId: 1,
      startUs: 0,
      startTimestampUs: 0,
      nowUs: 0,
      send: (parts) => {
        const datagram = wholeDatagram(parts)
        if (isControl(datagram)) controls.push(datagram)
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
    nowUs: 0,
  })
  return {
    sender,
    rtt,
    controls,
    push: (payload: string, nowUs = 0) => sender.push(Buffer.from(payload, 'latin1'), nowUs),
    take: () => sent.splice(0),
    /** Sequence numbers of the packets sent since the last call. */
    takeSequences: () => sent.splice(0).map(({ sequence }) => sequence),
    /** Ranges of the drop requests since the last call. */
    takeDropRequests: () =>
      controls
        .splice(0)
        .filter((datagram) => controlType(datagram) === ControlType.DROPREQ)
        .map((datagram) => decodeDropRequest(datagram)),
  }
}

const ack = (nextExpected: number, freePackets = 8192, rttUs = 20_000) => ({
  nextExpected,
  report: { rttUs, rttVarianceUs: 1000, freePackets },
})

t.test('sends payloads at once with sequence number and timestamp (3.1)', async (t) => {
  const { push, take } = createSender({ first: 0x7fffffff })
  t.ok(push('one', 1000))
  t.ok(push('two', 2500))
  t.strictSame(take(), [
    { sequence: 0x7fffffff, again: false, timestampUs: 1000, payload: 'one' },
    { sequence: 0, again: false, timestampUs: 2500, payload: 'two' },
  ])
})

t.test('numbers messages from 1, and timestamps from `startTimestampUs`', async (t) => {
  const messages: [number, number][] = []
  const sender = new Sender({
    initialSequenceNumber: 0,
    bufferPackets: 8,
    peerWindowPackets: 8,
    peerLatencyUs: 0,
    peerRepeatsNaks: true,
    maxBandwidthBps: 1e9,
    rtt: new RttEstimator(),
    transmitter: new Transmitter({
      peerSocketId: 1,
      startUs: 1000,
      startTimestampUs: 2 ** 32 - 500,
      nowUs: 1000,
      send: (parts) => {
        const datagram = wholeDatagram(parts)
        messages.push([messageNumber(datagram), timestampUs(datagram)])
      },
    }),
    nowUs: 1000,
  })
  sender.push(Buffer.alloc(1), 1200)
  sender.push(Buffer.alloc(1), 1700)
  t.strictSame(messages, [
    [1, 2 ** 32 - 300],
    [2, 200],
  ])
})

t.test('does not copy the payload, which senders share', async (t) => {
  const sent: Datagram[] = []
  const sender = new Sender({
    initialSequenceNumber: 0,
    bufferPackets: 8,
    peerWindowPackets: 8,
    peerLatencyUs: 0,
    peerRepeatsNaks: true,
    maxBandwidthBps: 1e9,
    rtt: new RttEstimator(),
    transmitter: new Transmitter({
      peerSocketId: 1,
      startUs: 0,
      startTimestampUs: 0,
      nowUs: 0,
      send: (datagram) => sent.push(datagram),
    }),
    nowUs: 0,
  })
  const payload = Buffer.from('first')
  sender.push(payload, 0)
  sender.handleNak([{ first: 0, last: 0 }], 100_000)
  t.equal(sent.length, 2)
  for (const datagram of sent) t.equal(datagram[1], payload)
})

t.test('retransmits lost packets with the R flag and their first timestamp (4.8.2)', async (t) => {
  const { sender, push, take } = createSender()
  for (const text of ['a', 'b', 'c', 'd']) push(text, 5000)
  take()
  sender.handleNak([{ first: 1, last: 2 }], 60_000)
  t.strictSame(take(), [
    { sequence: 1, again: true, timestampUs: 5000, payload: 'b' },
    { sequence: 2, again: true, timestampUs: 5000, payload: 'c' },
  ])
  t.match(sender.stats(), {
    pktSndLossTotal: 2,
    pktRecvNAKTotal: 1,
    pktRetransTotal: 2,
    byteRetransTotal: 2,
    pktSentTotal: 6,
    byteSentTotal: 6,
  })
})

t.test('retransmits a packet at most once per RTT', async (t) => {
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

t.test('clips NAKs to the packets in flight', async (t) => {
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

t.test('limits a NAK with overlapping ranges to one pass over the flight', async (t) => {
  const { sender, push, takeSequences } = createSender({ bufferPackets: 8192 })
  for (let i = 0; i < 4000; i++) push('x')
  takeSequences()
  sender.handleNak(
    Array.from({ length: 180 }, () => ({ first: 0, last: 3999 })),
    200_000,
  )
  t.equal(sender.stats().pktSndLossTotal, 4000)
})

t.test('stops reading a NAK that repeats its ranges', async (t) => {
  const { sender, push, takeSequences } = createSender()
  for (const text of 'abcdef') push(text)
  takeSequences()
  const ranges = [
    { first: 0, last: 3 },
    { first: 0, last: 3 },
    { first: 4, last: 5 },
  ]
  sender.handleNak(ranges, 200_000)
  t.strictSame(takeSequences(), [0, 1, 2, 3])
})

t.test('retransmits a packet after 10 ms at the earliest, for any RTT of the peer', async (t) => {
  const { sender, push, takeSequences } = createSender()
  push('a')
  sender.handleAck(ack(0, 8192, 0), 1, 20_000)
  takeSequences()
  for (let nowUs = 30_000; nowUs <= 50_000; nowUs += 1000) {
    sender.handleNak([{ first: 0, last: 0 }], nowUs)
  }
  t.strictSame(takeSequences(), [0, 0, 0])
})

t.test('an ACK releases packets, and sets RTT and window (3.2.4)', async (t) => {
  const { sender, rtt, push, controls } = createSender()
  push('a')
  push('b')
  sender.handleAck(ack(1, 100, 7000), 3, 10_000)
  t.equal(sender.stats().pktFlightSize, 1)
  t.strictSame([rtt.rttUs, rtt.varianceUs], [7000, 1000])
  t.strictSame(controls.map(controlType), [ControlType.ACKACK])
  t.equal(typeSpecificInformation(controls[0]!), 3)
  sender.handleAck({ nextExpected: 2 }, 0, 11_000)
  t.notOk(sender.busy)
  t.equal(controls.length, 1, 'a light ACK is not answered')
})

t.test('ignores an ACK of packets never sent', async (t) => {
  const { sender, push, controls } = createSender()
  push('a')
  sender.handleAck(ack(2), 1, 10_000)
  sender.handleAck(ack(0x30000000), 2, 10_000)
  t.match(sender.stats(), { pktFlightSize: 1, pktRecvACKTotal: 2, pktRecvACKInvalidTotal: 2 })
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

t.test('a closed window stops new packets but not retransmissions', async (t) => {
  const { sender, push, takeSequences } = createSender()
  push('a')
  push('b')
  sender.handleAck(ack(0, 0), 1, 10_000)
  for (const text of ['c', 'd', 'e']) push(text, 10_000)
  t.strictSame(takeSequences(), [0, 1])
  sender.handleNak([{ first: 0, last: 0 }], 60_000)
  t.strictSame(takeSequences(), [0])
  sender.handleAck(ack(1, 0), 2, 70_000)
  sender.tick(80_000)
  t.strictSame(takeSequences(), [])
  sender.handleAck(ack(1, 2), 3, 90_000)
  t.strictSame(takeSequences(), [2])
  t.equal(sender.stats().pktFlowWindow, 2)
})

t.test('a closed window admits one packet, as the ACK that opens it may be lost', async (t) => {
  const { sender, push, takeSequences } = createSender()
  push('a')
  sender.handleAck(ack(1, 0), 1, 10_000)
  for (const text of ['b', 'c', 'd']) push(text, 20_000)
  t.strictSame(takeSequences(), [0, 1], 'one is under way')
  sender.handleAck({ nextExpected: 2 }, 0, 30_000)
  t.strictSame(takeSequences(), [2], 'light ACKs have no window, and sending continues')
  sender.handleAck(ack(3, 8192), 2, 40_000)
  t.strictSame(takeSequences(), [3])
})

t.test('the window begins at the ACK position, and light ACKs reduce it', async (t) => {
  const { sender, push, takeSequences } = createSender({ peerWindowPackets: 4 })
  for (const text of 'abcdefghij') push(text)
  t.strictSame(takeSequences(), [0, 1, 2, 3])
  sender.handleAck(ack(1, 5), 1, 10_000)
  t.strictSame(takeSequences(), [4, 5], 'room for 1 to 5')
  sender.handleAck({ nextExpected: 4 }, 0, 20_000)
  t.equal(sender.stats().pktFlowWindow, 2, 'it ends where it ended')
  t.strictSame(takeSequences(), [])
  sender.handleAck({ nextExpected: 3 }, 0, 21_000)
  t.equal(sender.stats().pktFlowWindow, 2, 'an ACK that was overtaken takes nothing back')
  sender.handleAck(ack(4, 3), 2, 30_000)
  t.strictSame(takeSequences(), [6])
})

t.test('ignores the window of a full ACK that was overtaken', async (t) => {
  const { sender, push } = createSender()
  for (const text of 'abcd') push(text)
  sender.handleAck(ack(3, 10), 2, 20_000)
  sender.handleAck(ack(1, 2), 1, 21_000)
  t.equal(sender.stats().pktFlowWindow, 10)
  sender.handleAck(ack(3, 12), 3, 30_000)
  t.equal(sender.stats().pktFlowWindow, 12)
})

t.test('dropped packets use no window, acknowledged or not', async (t) => {
  const { sender, push, takeSequences } = createSender({ peerWindowPackets: 2 })
  push('a', 0)
  push('b', 0)
  push('c', 500_000)
  takeSequences()
  sender.tick(1_020_000)
  t.match(takeSequences(), [2])
})

t.test('a full buffer refuses payloads until it has room', async (t) => {
  const { sender, push } = createSender({ bufferPackets: 4 })
  for (const text of ['a', 'b', 'c', 'd']) t.ok(push(text))
  t.notOk(push('e'))
  t.equal(sender.stats().pktSndRefusedTotal, 1)
  sender.handleAck(ack(1), 1, 10_000)
  t.ok(push('e'))
})

t.test('drops packets that are too late, sent or not (4.6)', async (t) => {
  const { sender, push, takeSequences } = createSender({ peerWindowPackets: 1 })
  push('a', 0)
  push('b', 0)
  push('c', 500_000)
  t.strictSame(takeSequences(), [0])
  sender.tick(1_019_000)
  t.equal(sender.stats().pktSndDropTotal, 0)
  takeSequences()
  sender.tick(1_020_000)
  t.equal(sender.stats().pktSndDropTotal, 2)
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

t.test('paces a burst at the bandwidth, 10 ms at a time (5.1)', async (t) => {
  // 1372 bytes on the wire are 1.3 ms at 8.4 Mbit/s.
  const { sender, push, takeSequences } = createSender({ maxBandwidthBps: 8_400_000 })
  for (let i = 0; i < 40; i++) push('x'.repeat(1328), 0)
  t.equal(takeSequences().length, 8)
  sender.tick(10_000)
  t.equal(takeSequences().length, 8)
  for (let nowUs = 20_000; nowUs <= 50_000; nowUs += 10_000) sender.tick(nowUs)
  t.equal(takeSequences().length, 24)
})

t.test('sends a drop request where a NAK reports dropped packets (3.2.9)', async (t) => {
  const { sender, push, takeSequences, takeDropRequests } = createSender({ first: 0x7ffffffe })
  for (const text of 'abcd') push(text, 0)
  sender.handleAck(ack(0x7fffffff), 1, 10_000)
  for (const text of 'ef') push(text, 500_000)
  sender.tick(1_020_000)
  t.equal(sender.stats().pktSndDropTotal, 3)
  takeSequences()
  takeDropRequests()
  sender.handleNak([{ first: 0x70000000, last: 0x0fffffff }], 1_100_000)
  t.strictSame(takeDropRequests(), [{ first: 0x7fffffff, last: 1 }], 'no more than that')
  t.strictSame(takeSequences(), [2, 3], 'and what is here is sent')
  sender.handleNak([{ first: 0x7ffffff0, last: 0x7ffffffe }], 1_200_000)
  t.strictSame(takeDropRequests(), [], 'the peer has acknowledged these')
  sender.handleNak([{ first: 4, last: 100 }], 1_200_000)
  t.strictSame(takeDropRequests(), [], 'and these were never sent')
})

t.test('sends no drop request for packets not sent yet', async (t) => {
  const { sender, push, takeDropRequests } = createSender({ peerWindowPackets: 1 })
  for (const text of 'abc') push(text, 0)
  sender.handleNak([{ first: 0, last: 2 }], 200_000)
  t.strictSame(takeDropRequests(), [])
})

t.test('sends no drop request for acknowledged packets', async (t) => {
  const { sender, push, takeDropRequests } = createSender()
  for (const text of 'abc') push(text, 0)
  sender.tick(1_020_000)
  sender.handleAck(ack(2), 1, 1_030_000)
  sender.handleNak([{ first: 0, last: 2 }], 1_040_000)
  t.strictSame(takeDropRequests(), [{ first: 2, last: 2 }])
})

t.test('sends a drop request once per RTT for each range', async (t) => {
  const { sender, push, takeDropRequests } = createSender()
  for (const text of 'abcdef') push(text, 0)
  sender.handleAck(ack(0, 8192, 50_000), 1, 10_000)
  sender.tick(1_020_000)
  takeDropRequests()
  const ask = (first: number, last: number, nowUs: number) => {
    sender.handleNak([{ first, last }], nowUs)
    return takeDropRequests()
  }
  t.strictSame(ask(1, 2, 2_000_000), [{ first: 1, last: 2 }])
  t.strictSame(ask(1, 2, 2_049_999), [])
  t.strictSame(ask(2, 3, 2_049_999), [], 'part of the range was dropped already')
  t.strictSame(ask(4, 4, 2_049_999), [{ first: 4, last: 4 }])
  t.strictSame(ask(1, 4, 2_050_000), [], 'part of the range was dropped just now')
  t.strictSame(ask(1, 3, 2_050_000), [{ first: 1, last: 3 }])
})

t.test('sends 32 drop requests per RTT at most', async (t) => {
  const { sender, push, takeDropRequests } = createSender({ bufferPackets: 1024 })
  for (let i = 0; i < 1000; i++) push('x', 0)
  sender.handleAck(ack(0, 8192, 50_000), 1, 10_000)
  sender.tick(1_020_000)
  takeDropRequests()
  const singles = Array.from({ length: 364 }, (_, i) => ({ first: i * 2, last: i * 2 }))
  for (let nowUs = 2_000_000; nowUs < 2_050_000; nowUs += 1000) sender.handleNak(singles, nowUs)
  t.strictSame(takeDropRequests(), singles.slice(0, 32))
})

t.test('sends drop requests for recent packets to a peer that never acknowledges', async (t) => {
  const { sender, push, takeDropRequests } = createSender({ bufferPackets: 64 })
  for (let number = 0; number < 1000; number++) {
    push('x', number * 20_000)
    sender.tick(number * 20_000)
  }
  const { pktSndDropTotal: dropped } = sender.stats()
  sender.handleNak([{ first: 0, last: 999 }], 20_000_000)
  t.strictSame(takeDropRequests(), [{ first: dropped - 63, last: dropped - 1 }])
})

t.test('retransmits the last packet until it is acknowledged', async (t) => {
  const { sender, push, takeSequences, rtt } = createSender()
  for (const text of ['a', 'b']) push(text, 0)
  takeSequences()
  const afterUs = rtt.responseTimeoutUs + 60_000
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

t.test(
  'retransmits the whole flight without an ACK where the peer sends no periodic NAKs',
  async (t) => {
    const { sender, push, takeSequences, rtt } = createSender({ peerRepeatsNaks: false })
    for (const text of 'abcd') push(text, 5000)
    sender.handleAck(ack(1), 1, 30_000)
    takeSequences()
    const timeoutUs = rtt.responseTimeoutUs + 30_000
    sender.tick(30_000 + timeoutUs - 1)
    t.strictSame(takeSequences(), [])
    sender.tick(30_000 + timeoutUs)
    t.strictSame(takeSequences(), [1, 2, 3])
    sender.tick(20_000 + 2 * timeoutUs)
    t.strictSame(takeSequences(), [])
    sender.tick(30_000 + 2 * timeoutUs)
    t.strictSame(takeSequences(), [1, 2, 3], 'until an ACK comes')
    t.equal(sender.stats().pktSndLossTotal, 0, 'no NAK arrived')
  },
)

t.test('restarts the time-out on an ACK that releases packets, and on a new flight', async (t) => {
  const { sender, push, takeSequences, rtt } = createSender({ peerRepeatsNaks: false })
  for (const text of 'ab') push(text, 0)
  sender.handleAck(ack(0), 1, 10_000)
  const timeoutUs = rtt.responseTimeoutUs + 30_000
  sender.handleAck(ack(1), 2, 50_000)
  takeSequences()
  sender.tick(40_000 + timeoutUs)
  t.strictSame(takeSequences(), [])
  sender.handleAck(ack(2), 3, 45_000 + timeoutUs)
  push('c', 900_000)
  takeSequences()
  sender.tick(890_000 + timeoutUs)
  t.strictSame(takeSequences(), [])
  sender.tick(900_000 + timeoutUs)
  t.strictSame(takeSequences(), [2])
})

t.test('leaves packets retransmitted within the last RTT to the next time-out', async (t) => {
  const { sender, push, takeSequences, rtt } = createSender({ peerRepeatsNaks: false })
  for (const text of 'ab') push(text, 0)
  sender.handleAck(ack(0, 8192, 50_000), 1, 10_000)
  const timeoutUs = rtt.responseTimeoutUs + 30_000
  sender.handleNak([{ first: 0, last: 0 }], timeoutUs - 20_000)
  takeSequences()
  sender.tick(timeoutUs)
  t.strictSame(takeSequences(), [1])
})

t.test('is done once the peer has every packet and the time to play it has passed', async (t) => {
  const { sender, push } = createSender({ peerLatencyMs: 300 })
  t.ok(sender.isDone(0))
  push('a', 1_000_000)
  t.notOk(sender.isDone(9_000_000), 'not acknowledged')
  sender.handleAck(ack(1, 8192, 20_000), 1, 1_030_000)
  t.notOk(sender.isDone(1_339_000))
  t.ok(sender.isDone(1_340_000), 'RTT, latency, and a little more')
})

t.test('sends retransmissions before new packets', async (t) => {
  const { sender, push, takeSequences } = createSender({ maxBandwidthBps: 1_000_000 })
  for (let i = 0; i < 4; i++) push('x'.repeat(1000), 0)
  t.strictSame(takeSequences(), [0, 1])
  sender.handleNak([{ first: 0, last: 0 }], 1000)
  for (let nowUs = 10_000; nowUs <= 40_000; nowUs += 10_000) sender.tick(nowUs)
  t.strictSame(takeSequences(), [0, 2, 3])
})

t.test('sends four new packets per retransmission where bandwidth is short', async (t) => {
  // A packet of 1044 bytes on the wire takes 2 ms.
  const { sender, push, take } = createSender({ maxBandwidthBps: 4_176_000, bufferPackets: 1024 })
  let nowUs = 0
  const later = () => sender.tick((nowUs += 10_000))
  for (let i = 0; i < 100; i++) {
    push('x'.repeat(1000), nowUs)
    if (i % 5 === 0) later()
  }
  for (let i = 0; i < 300; i++) push('x'.repeat(1000), nowUs)
  take()
  for (let i = 0; i < 40; i++) {
    sender.handleNak([{ first: 0, last: 399 }], nowUs)
    later()
  }
  const sent = take()
  t.equal(sent.length, 200)
  t.equal(sent.filter(({ again }) => again).length, 40)
  t.strictSame(
    sent.slice(0, 10).map(({ again }) => again),
    [true, false, false, false, false, true, false, false, false, false],
  )
})

t.test('retransmits the oldest packets first, in any order of NAKs', async (t) => {
  const { sender, push, takeSequences } = createSender()
  for (const text of 'abcd') push(text)
  takeSequences()
  sender.handleNak(
    [
      { first: 3, last: 3 },
      { first: 0, last: 1 },
    ],
    200_000,
  )
  t.strictSame(takeSequences(), [0, 1, 3])
})

t.test('forgets the request of a packet that is acknowledged', async (t) => {
  // No packet may be sent for 80 ms after the first three.
  const { sender, push, takeSequences } = createSender({
    maxBandwidthBps: 100_000,
    bufferPackets: 4,
  })
  push('x'.repeat(1000))
  push('y')
  push('z')
  for (let nowUs = 0; nowUs <= 200_000; nowUs += 10_000) sender.tick(nowUs)
  takeSequences()
  push('x'.repeat(1400), 200_000)
  sender.handleNak([{ first: 0, last: 2 }], 210_000)
  sender.handleAck(ack(2), 1, 220_000)
  push('w', 220_000)
  for (let nowUs = 220_000; nowUs <= 600_000; nowUs += 10_000) sender.tick(nowUs)
  t.strictSame(takeSequences().slice(0, 3), [3, 2, 4])
})

t.test('sends at most three times the stream in a storm of NAKs', async (t) => {
  const { sender, push, take } = createSender({ bufferPackets: 1024 })
  const everything = Array.from({ length: 182 }, () => ({ first: 0, last: 0x3fffffff }))
  let nowUs = 0
  const storm = (packets: number) => {
    for (let i = 0; i < packets; i++) {
      push('x', (nowUs += 2000))
      // A hostile peer reports an RTT of 0.
      sender.handleAck(ack(0, 8192, 0), 1, nowUs)
      sender.handleNak(everything, nowUs)
      if (i % 5 === 0) sender.tick(nowUs)
    }
    return take().filter(({ again }) => again).length
  }
  t.ok(storm(2000) <= 1024 + 2 * 2000)
  const again = storm(5000)
  t.ok(again <= 2 * 5000 && again > 9000, `${again} for 5000 new ones`)
})

t.test('looks at 16 packets for each new one, however many NAKs come', async (t) => {
  const { sender, push, takeSequences } = createSender({ bufferPackets: 64 })
  for (const text of 'abcdefgh') push(text)
  takeSequences()
  const nak = (nowUs: number) => {
    sender.handleNak([{ first: 0, last: 7 }], nowUs)
    return takeSequences()
  }
  t.strictSame(nak(200_000), [0, 1, 2, 3, 4, 5, 6, 7])
  for (let i = 0; i < 100; i++) t.strictSame(nak(200_000), [], 'within the same round trip')
  t.strictSame(nak(400_000), [], 'as many as the buffer holds have been looked at')
  push('i', 400_000)
  t.strictSame(takeSequences(), [8])
  t.strictSame(nak(400_000), [0, 1, 2, 3, 4, 5, 6, 7])
})

t.test('limits the RTT of the peer to ten seconds', async (t) => {
  const { sender, push } = createSender()
  push('a', 0)
  sender.handleAck(ack(1, 8192, 3_600_000_000), 1, 10_000)
  t.ok(sender.isDone(10_140_000))
})

t.test('survives arbitrary ACKs and NAKs', async (t) => {
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
      const { sender, push, take, takeDropRequests } = createSender({ first, bufferPackets: 64 })
      let nowUs = 0
      let next = first
      let acknowledged = first
      for (const one of steps) {
        if ('push' in one && push('x', nowUs)) next = addToSequence(next, 1)
        if ('ack' in one) {
          const position = addToSequence(first, one.ack)
          const { pktRecvACKInvalidTotal: ignored } = sender.stats()
          sender.handleAck(ack(position, one.window), 1, nowUs)
          const isTaken = sender.stats().pktRecvACKInvalidTotal === ignored
          if (isTaken && sequenceDistance(acknowledged, position) > 0) acknowledged = position
        }
        if ('nakFrom' in one) {
          const from = addToSequence(first, one.nakFrom)
          sender.handleNak([{ first: from, last: addToSequence(from, one.more) }], nowUs)
        }
        if ('waitUs' in one) sender.tick((nowUs += one.waitUs))
        for (const { sequence } of take()) {
          if (sequenceDistance(sequence, next) <= 0) throw new Error('sent what was never given')
        }
        for (const range of takeDropRequests()) {
          const isKnown = sequenceDistance(acknowledged, range!.first) < 0
          if (isKnown || sequenceDistance(range!.last, next) <= 0)
            throw new Error('a drop request covers kept packets')
        }
        const { pktSndBuf, pktFlightSize } = sender.stats()
        if (pktSndBuf > 64 || pktFlightSize > pktSndBuf) throw new Error('kept too much')
      }
    }),
    { numRuns: 500 },
  )
  t.pass()
})
