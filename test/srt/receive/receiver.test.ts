import * as fc from 'fast-check'
import t from 'tap'
import { addToSequence, sequenceDistance } from '../../../src/srt/wire/counters.ts'
import { ReceiveQueue } from '../../../src/srt/receive/receive-queue.ts'
import { Receiver } from '../../../src/srt/receive/receiver.ts'
import { RttEstimator } from '../../../src/srt/rtt-estimator.ts'
import { Transmitter } from '../../../src/srt/transmitter.ts'
import { decodeAck } from '../../../src/srt/wire/ack.ts'
import { decodeLossList, type LossRange } from '../../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  controlType,
  HEADER_BYTES,
  markRetransmitted,
  typeSpecificInformation,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import { wholeDatagram } from '../whole-datagram.ts'

const LATENCY_US = 120_000
/** One-way delay of handshake and data. */
const TRANSIT_US = 20_000
const TICK_US = 10_000

/** Progress of a process that finds its sockets empty at every tick. */
const READS_IN_TIME = { behind: false, mayHaveWaited: () => false }

interface Options {
  first?: number
  windowPackets?: number
  progress?: typeof READS_IN_TIME
  eagerNak?: boolean
  isBonded?: boolean
  marksRetransmissions?: boolean
  startTimestampUs?: number
}

/** Receiver whose peer sent its handshake at 0, with a log of its output: delivered packets, gaps and answers. */
function createReceiver(
  options: Options = {},
  onPush: (number: number) => void = () => {},
  onGap = () => {},
) {
  const first = options.first ?? 0
  const startTimestampUs = options.startTimestampUs ?? 0
  const delivered: (number | string)[] = []
  const answers: Buffer[] = []
  const rtt = new RttEstimator()
  const shared = {
    initialSequenceNumber: first,
    windowPackets: options.windowPackets ?? 1024,
    nowUs: 0,
  }
  const queue = new ReceiveQueue({
    ...shared,
    delivery: {
      handshakeTimestampUs: startTimestampUs,
      handshakeArrivedUs: TRANSIT_US,
      latencyUs: LATENCY_US,
    },
    sink: {
      push: (payload) => {
        delivered.push(payload.readUInt32BE())
        onPush(payload.readUInt32BE())
      },
      gap: (lostPackets) => {
        delivered.push(`gap ${lostPackets}`)
        onGap()
      },
    },
  })
  const receiver = new Receiver({
    ...shared,
    queue,
    latencyUs: LATENCY_US,
    eagerNak: options.eagerNak ?? true,
    isBonded: options.isBonded ?? false,
    progress: options.progress ?? READS_IN_TIME,
    marksRetransmissions: options.marksRetransmissions ?? true,
    rtt,
    transmitter: new Transmitter({
      peerSocketId: 1,
      startUs: 0,
      startTimestampUs: 0,
      nowUs: 0,
      send: (datagram) => answers.push(wholeDatagram(datagram)),
    }),
  })
  return {
    receiver,
    rtt,
    delivered,
    /** The n-th packet (from 0), sent at `sentUs`, arrives. */
    arrive(number: number, sentUs = number * 1000, arrivedUs = sentUs + TRANSIT_US): void {
      const datagram = dataPacket(addToSequence(first, number), number, startTimestampUs + sentUs)
      receiver.handleData(datagram, arrivedUs)
    },
    /** Answers of this control type since the last call. */
    take(type: number): Buffer[] {
      const taken = answers.filter((datagram) => controlType(datagram) === type)
      answers.splice(0, answers.length, ...answers.filter((datagram) => !taken.includes(datagram)))
      return taken
    },
  }
}

function dataPacket(sequence: number, number: number, timestampUs: number): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + 4)
  writeDataHeader(datagram, { sequence, message: 1, timestampUs, socketId: 2 })
  datagram.writeUInt32BE(number, HEADER_BYTES)
  return datagram
}

const range = (first: number, last = first): LossRange => ({ first, last })
const lossesOf = (naks: Buffer[]) => naks.map((nak) => decodeLossList(nak))

t.test('delivers packets in order at once', async (t) => {
  const { receiver, arrive, delivered } = createReceiver()
  for (let number = 0; number < 5; number++) arrive(number)
  t.strictSame(delivered, [0, 1, 2, 3, 4])
  t.match(receiver.stats(), { pktRecvTotal: 5, byteRecvTotal: 20, pktRcvLossTotal: 0 })
})

t.test('holds packets behind a missing one', async (t) => {
  const { receiver, arrive, delivered } = createReceiver()
  for (const number of [0, 2, 3, 5]) arrive(number)
  t.strictSame(delivered, [0])
  arrive(1, 1000, 40_000)
  t.strictSame(delivered, [0, 1, 2, 3])
  arrive(4, 4000, 41_000)
  t.strictSame(delivered, [0, 1, 2, 3, 4, 5])
  t.match(receiver.stats(), { pktRcvLossTotal: 2, pktRcvDropTotal: 0, pktRcvDuplicateTotal: 0 })
})

t.test('reports a new gap at once, without the older ones (4.8.2)', async (t) => {
  const { arrive, take } = createReceiver()
  arrive(0)
  arrive(3)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1, 2)]])
  arrive(5)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(4)]])
})

t.test('reports all gaps again periodically (4.8.2)', async (t) => {
  const { receiver, arrive, take } = createReceiver()
  for (const number of [0, 3, 5]) arrive(number, 0, 25_000)
  take(ControlType.NAK)
  receiver.tick(30_000)
  t.strictSame(take(ControlType.NAK), [], 'not before its time')
  receiver.tick(45_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1, 2), range(4)]])
  receiver.tick(55_000)
  t.strictSame(take(ControlType.NAK), [])
  arrive(1, 0, 60_000)
  receiver.tick(65_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(2), range(4)]])
})

t.test('sends periodic NAKs less often to peers that retransmit for every one', async (t) => {
  const { receiver, rtt, arrive, take } = createReceiver({ eagerNak: false })
  rtt.adopt(60_000, 5000)
  for (const number of [0, 2]) arrive(number, 0, 20_000)
  take(ControlType.NAK)
  // Half of RTT + 4 x variance later.
  receiver.tick(60_000 - 1)
  t.strictSame(take(ControlType.NAK), [])
  receiver.tick(60_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1)]])
})

t.test('repeats NAKs after a response timeout while retransmissions may lie unread', async (t) => {
  const progress = { ...READS_IN_TIME, behind: true }
  const { receiver, rtt, arrive, take } = createReceiver({ progress })
  rtt.adopt(20_000, 2500)
  for (const number of [0, 2]) arrive(number, 0, 20_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1)]], 'a new gap is reported at once')
  for (const nowUs of [30_000, 40_000]) receiver.tick(nowUs)
  t.strictSame(take(ControlType.NAK), [])
  // RTT + 4 x variance later.
  receiver.tick(50_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1)]])
  progress.behind = false
  receiver.tick(80_000)
  receiver.tick(100_000)
  t.equal(take(ControlType.NAK).length, 2, 'every 20 ms again')
})

t.test('reports each piece of a long loss of a bonded sender again', async (t) => {
  const { receiver, rtt, arrive, take } = createReceiver({ isBonded: true, windowPackets: 4096 })
  rtt.adopt(40_000, 0)
  arrive(0, 0)
  arrive(2000, 0)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1, 1999)]])
  // One of two lines is dead: every other retransmission arrives.
  for (let number = 1; number < 2000; number += 2) arrive(number, 0)
  receiver.tick(110_000)
  const again = lossesOf(take(ControlType.NAK)).flatMap((ranges) => ranges ?? [])
  t.equal(again.length, 999)
  t.strictSame([again[0], again.at(-1)], [range(2), range(1998)])
})

t.test('raises the reorder tolerance after a reordered packet', async (t) => {
  const { receiver, rtt, arrive, take } = createReceiver()
  rtt.adopt(40_000, 0)
  for (const number of [0, 2, 3, 4]) arrive(number)
  t.equal(take(ControlType.NAK).length, 1, 'nothing is known yet')
  arrive(1)
  t.equal(receiver.stats().pktReorderTolerance, 3)
  for (const number of [6, 7, 8]) arrive(number)
  t.strictSame(take(ControlType.NAK), [], 'three may overtake one')
  arrive(5)
  for (const number of [10, 11, 12, 13]) arrive(number)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(9)]], 'a fourth is too much')
  t.match(receiver.stats(), { pktRcvLossTotal: 3, pktSentNAKTotal: 2 })
})

t.test('reports each of two fresh gaps after its own tolerance', async (t) => {
  const { rtt, arrive, take } = createReceiver()
  rtt.adopt(40_000, 0)
  for (const number of [0, 2, 3, 4, 1]) arrive(number)
  take(ControlType.NAK)
  for (const number of [6, 8]) arrive(number)
  t.strictSame(take(ControlType.NAK), [])
  arrive(9)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(5)]])
  arrive(10)
  t.strictSame(take(ControlType.NAK), [])
  arrive(11)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(7)]])
})

t.test('waits for reordered packets a quarter of the round trip at most', async (t) => {
  const { receiver, rtt, arrive, take } = createReceiver()
  for (const number of [0, 2, 3, 4, 1]) arrive(number)
  take(ControlType.NAK)
  rtt.adopt(40_000, 0)
  arrive(6)
  const noticedUs = 6000 + TRANSIT_US
  receiver.tick(noticedUs + 9_999)
  t.strictSame(take(ControlType.NAK), [], 'and the periodic report leaves it out as well')
  receiver.tick(noticedUs + 10_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(5)]])
})

t.test('reports a gap at once where the latency is below three round trips', async (t) => {
  const { rtt, arrive, take } = createReceiver()
  for (const number of [0, 2, 3, 4, 1]) arrive(number)
  take(ControlType.NAK)
  rtt.adopt(LATENCY_US / 3 + 1, 0)
  arrive(6)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(5)]])
})

t.test('waits for reordering in a gap right after one that closed', async (t) => {
  const { receiver, rtt, arrive, take } = createReceiver()
  for (const number of [0, 2, 3, 4, 1]) arrive(number)
  take(ControlType.NAK)
  rtt.adopt(40_000, 0)
  for (const number of [6, 5]) arrive(number, 0, 30_000)
  for (const number of [8, 7]) arrive(number, 0, 40_000)
  t.strictSame(take(ControlType.NAK), [])
  arrive(10, 0, 41_000)
  receiver.tick(51_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(9)]])
})

t.test('reports a loss of a bonded sender again only after a round trip', async (t) => {
  const { receiver, arrive, take, rtt } = createReceiver({ isBonded: true })
  rtt.adopt(40_000, 5000)
  arrive(0)
  arrive(2)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1)]])
  receiver.tick(50_000)
  arrive(4, 52_000, 60_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(3)]], 'the new one alone')
  receiver.tick(61_999)
  t.strictSame(take(ControlType.NAK), [])
  receiver.tick(62_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1)]], 'RTT + 4 x variance is too late here')
  arrive(3, 3000, 100_000)
  receiver.tick(120_000)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(1)]], 'not what has arrived')
  receiver.tick(160_000)
  t.strictSame(take(ControlType.NAK), [], 'not what was dropped')
  t.match(receiver.stats(), { pktRcvLossTotal: 2, pktRcvDropTotal: 1 })
})

t.test('waits a quarter of the latency for packets on other lines', async (t) => {
  const { receiver, arrive, take } = createReceiver({ isBonded: true })
  for (const number of [0, 2, 3, 4, 5, 6, 1]) arrive(number, 0, 20_000)
  t.equal(receiver.stats().pktReorderTolerance, 5)
  take(ControlType.NAK)
  arrive(8, 0, 21_000)
  receiver.tick(21_000 + LATENCY_US / 4 - 1)
  t.strictSame(take(ControlType.NAK), [])
  t.equal(receiver.stats().pktRcvLossTotal, 1, 'on its way is not lost')
  receiver.tick(21_000 + LATENCY_US / 4)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(7)]])
})

t.test('reports all losses of a bonded sender, however many fall due at once', async (t) => {
  const { receiver, arrive, take, rtt } = createReceiver({ isBonded: true })
  rtt.adopt(10_000, 2500)
  for (let number = 0; number < 1000; number += 2) arrive(number, 0, 20_000)
  take(ControlType.NAK)
  receiver.tick(60_000)
  const lost = take(ControlType.NAK).flatMap((nak) => decodeLossList(nak)!)
  t.strictSame(
    lost,
    Array.from({ length: 499 }, (_, index) => range(index * 2 + 1)),
  )
})

t.test('lowers the reorder tolerance over time', async (t) => {
  const { receiver, arrive } = createReceiver()
  for (const number of [0, 2, 3, 4, 5, 6, 7, 8, 1]) arrive(number)
  t.equal(receiver.stats().pktReorderTolerance, 7)
  for (let second = 1; second <= 2; second++) receiver.tick(second * 1_000_000)
  t.equal(receiver.stats().pktReorderTolerance, 6)
  for (let second = 3; second <= 10; second++) receiver.tick(second * 1_000_000)
  t.equal(receiver.stats().pktReorderTolerance, 0)
})

t.test('keeps the reorder tolerance where a late packet may be a retransmission', async (t) => {
  const unmarked = createReceiver({ marksRetransmissions: false })
  for (const number of [0, 2, 3, 1]) unmarked.arrive(number)
  t.equal(
    unmarked.receiver.stats().pktReorderTolerance,
    0,
    'unknown, since the sender does not mark retransmissions',
  )
  const { receiver, arrive } = createReceiver()
  for (const number of [0, 2, 3]) arrive(number)
  const again = dataPacket(1, 1, 1000)
  markRetransmitted(again)
  receiver.handleData(again, 40_000)
  t.equal(receiver.stats().pktReorderTolerance, 0, 'it is one')
})

t.test('limits a NAK to the gaps that fit one datagram', async (t) => {
  const { receiver, arrive, take } = createReceiver()
  for (let number = 0; number < 1000; number += 2) arrive(number, 0, 20_000)
  take(ControlType.NAK)
  receiver.tick(60_000)
  const [nak, ...more] = take(ControlType.NAK)
  t.strictSame(more, [])
  t.strictSame(decodeLossList(nak!)![0], range(1))
  t.equal(decodeLossList(nak!)!.length, 182)
})

t.test('limits NAKs to 64 kB/s or a tenth of the receiving rate', async (t) => {
  const { receiver, arrive, take } = createReceiver({ windowPackets: 100_000 })
  // A NAK of 20 bytes for each packet of 20.
  for (let number = 1; number < 10_000; number += 2) arrive(number, 0)
  t.equal(take(ControlType.NAK).length, 64_000 / 20)
  t.equal(receiver.stats().pktNAKWithheldTotal, 1800)
  t.equal(receiver.stats().pktRcvLossTotal, 5000, 'what is not reported is counted all the same')
  receiver.tick(100_000)
  t.equal(take(ControlType.NAK).length, 1, 'requested once there is room')
})

t.test('drops a gap when the packet behind it is due (4.6)', async (t) => {
  const { receiver, arrive, delivered, take } = createReceiver()
  arrive(0)
  arrive(3, 50_000)
  const dueUs = 50_000 + TRANSIT_US + LATENCY_US
  receiver.tick(dueUs - 1)
  t.strictSame(delivered, [0])
  receiver.tick(dueUs)
  t.strictSame(delivered, [0, 'gap 2', 3])
  take(ControlType.NAK)
  receiver.tick(dueUs + 100_000)
  t.equal(decodeAck(take(ControlType.ACK).at(-1)!)?.nextExpected, 4, 'the ACK skips it too')
  t.strictSame(take(ControlType.NAK), [], 'no longer requested')
  for (const late of [1, 2, 3]) arrive(late, 1000, dueUs + 100_000)
  t.strictSame(delivered, [0, 'gap 2', 3])
  t.match(receiver.stats(), { pktRcvDropTotal: 2, pktRcvBelatedTotal: 2, pktRcvDuplicateTotal: 1 })
})

t.test('keeps waiting for a gap that no packet follows', async (t) => {
  const { receiver, arrive, delivered } = createReceiver()
  arrive(0)
  receiver.tick(60_000_000)
  arrive(1, 60_000_000)
  t.strictSame(delivered, [0, 1])
})

t.test(
  'holds packets no longer than the latency behind a timestamp far in the future',
  async (t) => {
    const { receiver, arrive, delivered } = createReceiver()
    arrive(0)
    arrive(2, 20 * 60e6, 50_000)
    receiver.tick(50_000 + LATENCY_US)
    t.strictSame(delivered, [0, 'gap 1', 2])
  },
)

t.test('delivery times continue where the timestamp wraps', async (t) => {
  const { receiver, arrive, delivered } = createReceiver({ startTimestampUs: 2 ** 32 - 30_000 })
  arrive(0, 10_000)
  arrive(2, 50_000)
  receiver.tick(50_000 + TRANSIT_US + LATENCY_US - 1)
  t.strictSame(delivered, [0])
  receiver.tick(50_000 + TRANSIT_US + LATENCY_US)
  t.strictSame(delivered, [0, 'gap 1', 2])
})

t.test('delivers in order where sequence numbers wrap', async (t) => {
  const { arrive, delivered, take } = createReceiver({ first: 0x7ffffffe })
  for (const number of [0, 3]) arrive(number)
  t.strictSame(lossesOf(take(ControlType.NAK)), [[range(0x7fffffff, 0)]])
  for (const number of [2, 1]) arrive(number, 0, 30_000)
  t.strictSame(delivered, [0, 1, 2, 3])
})

t.test('counts duplicates without delivering them', async (t) => {
  const { receiver, arrive, delivered } = createReceiver()
  for (const number of [0, 0, 2, 2, 1, 1]) arrive(number, 0, 20_000)
  t.strictSame(delivered, [0, 1, 2])
  t.match(receiver.stats(), { pktRecvTotal: 6, pktRcvDuplicateTotal: 3, pktRcvBelatedTotal: 0 })
})

t.test('discards packets of a packet filter before their sequence number counts', async (t) => {
  const { receiver, delivered, arrive } = createReceiver()
  arrive(0)
  const fec = dataPacket(1, 99, 0)
  fec.writeUInt32BE(0xc0000000, 4)
  receiver.handleData(fec, 20_000)
  arrive(1)
  t.strictSame(delivered, [0, 1])
  t.match(receiver.stats(), { pktRecvTotal: 2, pktRcvFilterExtraTotal: 1 })
})

t.test('counts and drops encrypted packets on a connection in clear', async (t) => {
  const { receiver, delivered } = createReceiver()
  const encrypted = dataPacket(0, 0, 0)
  encrypted.writeUInt32BE(0xc8000001, 4)
  receiver.handleData(encrypted, 20_000)
  t.strictSame(delivered, [])
  t.equal(receiver.stats().pktRcvUndecryptTotal, 1)
})

t.test('counts retransmissions', async (t) => {
  const { receiver } = createReceiver()
  const again = dataPacket(0, 0, 0)
  markRetransmitted(again)
  receiver.handleData(again, 20_000)
  t.equal(receiver.stats().pktRcvRetransTotal, 1)
})

t.test(
  'sends a full ACK with position, RTT and free buffer at the next tick (3.2.4)',
  async (t) => {
    const { receiver, arrive, take } = createReceiver({ windowPackets: 1000 })
    for (const number of [0, 1, 3]) arrive(number)
    receiver.tick(TRANSIT_US + TICK_US)
    const [ack, ...more] = take(ControlType.ACK)
    t.strictSame(more, [])
    t.equal(typeSpecificInformation(ack!), 1)
    t.strictSame(decodeAck(ack!), {
      nextExpected: 2,
      report: { rttUs: 100_000, rttVarianceUs: 50_000, freePackets: 1000 },
    })
  },
)

t.test('delays the ACK of a few packets, for 100 ms at most', async (t) => {
  const { receiver, arrive, take } = createReceiver()
  const ackAt = (nowUs: number) => {
    receiver.tick(nowUs)
    return take(ControlType.ACK).length
  }
  arrive(0, 0, 0)
  t.equal(ackAt(10_000), 1, 'the first is acknowledged at once: it measures the RTT')
  for (let number = 1; number < 48; number++) arrive(number, 0, 11_000)
  t.equal(ackAt(20_000), 0)
  arrive(48, 0, 21_000)
  t.equal(ackAt(30_000), 1, '48 packets')
  arrive(49, 0, 31_000)
  t.strictSame([110_000, 120_000, 130_000].map(ackAt), [0, 0, 1], 'after 100 ms')
})

t.test('repeats an ACK only where its ACKACK is overdue', async (t) => {
  const { receiver, rtt, arrive, take } = createReceiver()
  arrive(0, 0, 0)
  receiver.tick(10_000)
  t.equal(take(ControlType.ACK).length, 1)
  t.ok(receiver.busy)
  receiver.tick(20_000)
  t.equal(take(ControlType.ACK).length, 0, 'the ACKACK may be on its way')
  receiver.tick(10_000 + rtt.responseTimeoutUs)
  const [again] = take(ControlType.ACK)
  t.equal(typeSpecificInformation(again!), 2)
  receiver.handleAckAck(2, 10_000 + rtt.responseTimeoutUs + 8000)
  t.notOk(receiver.busy)
  receiver.tick(10_000_000)
  t.equal(take(ControlType.ACK).length, 0)
})

t.test(
  'sets the RTT by the first ACKACK and smooths it by later ones (4.10; libsrt)',
  async (t) => {
    const { receiver, rtt, arrive } = createReceiver()
    arrive(0)
    receiver.tick(30_000)
    receiver.handleAckAck(7, 31_000)
    t.equal(rtt.rttUs, 100_000, 'ignores an ACKACK without an ACK')
    receiver.handleAckAck(1, 38_000)
    t.strictSame([rtt.rttUs, rtt.varianceUs], [8000, 4000])
    receiver.handleAckAck(1, 90_000)
    t.strictSame([rtt.rttUs, rtt.varianceUs], [8000, 4000], 'ignores a repeated ACKACK')
    arrive(1)
    receiver.tick(130_000)
    receiver.handleAckAck(2, 146_000)
    t.strictSame([rtt.rttUs, rtt.varianceUs], [9000, 5000])
  },
)

t.test('sends a light ACK after 64 packets without a full one (3.2.4)', async (t) => {
  const { receiver, arrive, take } = createReceiver()
  for (let number = 0; number < 130; number++) arrive(number, 0, 20_000)
  const acks = take(ControlType.ACK)
  t.strictSame(acks.map(typeSpecificInformation), [0, 0])
  t.strictSame(acks.map(decodeAck), [{ nextExpected: 64 }, { nextExpected: 128 }])
  receiver.tick(30_000)
  t.equal(decodeAck(take(ControlType.ACK)[0]!)?.nextExpected, 130)
  for (let number = 131; number < 200; number++) arrive(number, 0, 31_000)
  t.strictSame(take(ControlType.ACK), [], 'no second ACK for the same position')
})

t.test('drops the gap that a drop request covers (3.2.9)', async (t) => {
  const { receiver, arrive, delivered } = createReceiver()
  for (const number of [0, 4, 6]) arrive(number)
  receiver.handleDropRequest({ first: 1, last: 1 })
  t.strictSame(delivered, [0, 'gap 1'])
  receiver.handleDropRequest({ first: 1, last: 1 })
  t.strictSame(delivered, [0, 'gap 1'], 'once')
  receiver.handleDropRequest({ first: 1, last: 1000 })
  t.strictSame(delivered, [0, 'gap 1', 'gap 2', 4], 'no further than to what is here')
  receiver.handleDropRequest({ first: 6, last: 9 })
  receiver.handleDropRequest({ first: 0x40000000, last: 0x7fffffff })
  t.strictSame(delivered.length, 4, 'ranges elsewhere change nothing')
  receiver.handleDropRequest({ first: 5, last: 5 + 0x3fffffff })
  t.strictSame(delivered.slice(4), ['gap 1', 6], 'as far as numbers reach')
  arrive(5, 0, 30_000)
  t.match(receiver.stats(), { pktRcvDropTotal: 4, pktRcvBelatedTotal: 1 })
})

t.test('drops a packet beyond the receive window', async (t) => {
  const { receiver, arrive, delivered } = createReceiver({ windowPackets: 64 })
  arrive(0)
  arrive(2, 0, 20_000)
  arrive(65, 0, 20_000)
  t.match(receiver.stats(), { pktRcvOverflowTotal: 1, pktRcvLossTotal: 1 })
  arrive(64, 0, 20_000)
  arrive(1, 0, 20_000)
  t.strictSame(delivered, [0, 1, 2])
})

t.test('calls a sink no more that closes the connection in `gap`', async (t) => {
  const { receiver, arrive, delivered } = createReceiver({ windowPackets: 64 }, (number) => {
    if (number === 2) receiver.stop()
  })
  arrive(0)
  arrive(2, 0, 20_000)
  arrive(100, 200_000)
  t.strictSame(delivered, [0, 'gap 1', 2])
})

t.test('drops a late gap to make room for a packet beyond the window', async (t) => {
  const { receiver, arrive, delivered } = createReceiver({ windowPackets: 64 })
  arrive(0)
  arrive(2, 0, 20_000)
  arrive(66, 200_000)
  t.strictSame(delivered, [0, 'gap 1', 2])
  t.equal(receiver.stats().pktRcvOverflowTotal, 0)
})

t.test(
  'follows a jump of the sequence number where no packet is missing (libsrt disconnects)',
  async (t) => {
    const { receiver, arrive, delivered, take } = createReceiver({ windowPackets: 64 })
    arrive(0)
    arrive(5_000_001, 30_000)
    t.strictSame(delivered, [0], 'one alone may be astray')
    arrive(5_000_003, 31_000)
    t.strictSame(delivered, [0, 'gap 5000000'])
    t.strictSame(lossesOf(take(ControlType.NAK)), [[range(5_000_001, 5_000_002)]])
    for (const number of [5_000_001, 5_000_002]) arrive(number, 31_000, 60_000)
    t.strictSame(delivered, [0, 'gap 5000000', 5_000_001, 5_000_002, 5_000_003])
    t.match(receiver.stats(), {
      pktRcvLossTotal: 5_000_002,
      pktRcvDropTotal: 5_000_000,
      pktRcvOverflowTotal: 1,
      pktRcvResyncTotal: 1,
    })
  },
)

t.test('ignores a single packet with a wrong sequence number', async (t) => {
  for (const bit of [14, 20, 29]) {
    const { receiver, arrive, delivered } = createReceiver({ first: 0x7fffffff - 150 })
    const numbers = Array.from({ length: 300 }, (_, i) => i)
    for (const number of numbers) {
      // Twice, since the network may duplicate it.
      if (number % 100 === 99) for (let copy = 0; copy < 2; copy++) arrive(number + 2 ** bit, 0)
      arrive(number, 0, 20_000)
    }
    t.strictSame(delivered, numbers)
    t.match(receiver.stats(), { pktRcvOverflowTotal: 6, pktRcvResyncTotal: 0 })
  }
})

t.test('calls a sink no more that closes the connection during a jump', async (t) => {
  const { receiver, arrive, delivered } = createReceiver(
    { windowPackets: 64 },
    () => {},
    () => {
      receiver.stop()
    },
  )
  arrive(0)
  arrive(1000, 20_000)
  arrive(1002, 20_000)
  t.strictSame(delivered, [0, 'gap 999'])
  t.equal(receiver.stats().pktRcvBuf, 0)
})

t.test('holds thousands of packets behind a missing one, across the wrap', async (t) => {
  const { arrive, delivered } = createReceiver({ first: 0x7fffffff - 700, windowPackets: 4096 })
  const numbers = Array.from({ length: 3000 }, (_, i) => i)
  for (const number of numbers.slice(1)) arrive(number, 0, 20_000)
  t.strictSame(delivered, [])
  arrive(0, 0, 30_000)
  t.strictSame(delivered, numbers)
})

t.test('delivers held packets at the end', async (t) => {
  const { receiver, arrive, delivered } = createReceiver()
  for (const number of [0, 2, 3, 6]) arrive(number)
  receiver.flush()
  t.strictSame(delivered, [0, 'gap 1', 2, 3, 'gap 2', 6])
})

t.test('behaves like a naive reference receiver', async (t) => {
  const capacity = 64
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ ahead: fc.integer({ min: -8, max: 12 }) }) },
    { weight: 1, arbitrary: fc.record({ ahead: fc.integer({ min: -200, max: 200 }) }) },
    { weight: 1, arbitrary: fc.record({ waitUs: fc.integer({ min: 0, max: 60_000 }) }) },
  )
  const starts = fc.constantFrom(0, 0x7ffffff0, 0x3fffffff, 12345)
  fc.assert(
    fc.property(starts, fc.array(step, { maxLength: 300 }), (first, steps) => {
      const { receiver, arrive, delivered, take } = createReceiver({
        first,
        windowPackets: capacity,
      })
      const model = new NaiveReceiver(capacity)
      let nowUs = TRANSIT_US
      let newest = 0
      for (const one of steps) {
        if ('waitUs' in one) {
          nowUs += one.waitUs
          receiver.tick(nowUs)
          model.dropTooLate(nowUs)
        } else {
          nowUs += 500
          const number = Math.max(0, newest + one.ahead)
          const sentUs = nowUs - TRANSIT_US
          arrive(number, sentUs, nowUs)
          model.arrive(number, sentUs + TRANSIT_US + LATENCY_US, nowUs)
          newest = Math.max(newest, model.end)
        }
        const stats = receiver.stats()
        t.strictSame(
          {
            dropped: stats.pktRcvDropTotal,
            stale: stats.pktRcvDuplicateTotal + stats.pktRcvBelatedTotal,
            overflow: stats.pktRcvOverflowTotal,
            held: stats.pktRcvBuf,
          },
          {
            dropped: model.dropped,
            stale: model.stale,
            overflow: model.overflow,
            held: model.heldPackets,
          },
        )
      }
      t.strictSame(delivered, model.delivered)

      // A delay beyond a quarter of the RTT counts as a loss, not as reordering.
      for (const laterUs of [0, 25_000, 45_000]) {
        take(ControlType.NAK)
        receiver.tick(nowUs + laterUs)
        model.dropTooLate(nowUs + laterUs)
      }
      const reported = (lossesOf(take(ControlType.NAK)).at(-1) ?? []).flatMap(
        ({ first: a, last }) =>
          Array.from({ length: sequenceDistance(a, last) + 1 }, (_, i) =>
            sequenceDistance(first, addToSequence(a, i)),
          ),
      )
      t.strictSame(reported, model.missing())
    }),
    { numRuns: 300 },
  )
})

/** Model of the receiver: a map and counters, with numbers that never wrap. */
class NaiveReceiver {
  readonly delivered: (number | string)[] = []
  dropped = 0
  stale = 0
  overflow = 0
  next = 0
  end = 0
  #outOfReach = -Infinity
  readonly #held = new Map<number, number>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get heldPackets(): number {
    return this.#held.size
  }

  arrive(number: number, dueUs: number, nowUs: number): void {
    if (number - this.next >= this.#capacity) {
      this.dropTooLate(nowUs)
    }
    if (number - this.next >= this.#capacity) {
      const before = this.#outOfReach
      this.#outOfReach = number
      const follows = number > before && number < before + this.#capacity
      if (this.#held.size > 0 || !follows) {
        this.overflow++
        return
      }
      this.#skipTo(before)
    }
    if (number === this.next && this.#held.size === 0) this.#outOfReach = -Infinity
    if (number < this.next || this.#held.has(number)) {
      this.stale++
      return
    }
    this.#held.set(number, dueUs)
    this.end = Math.max(this.end, number + 1)
    this.#deliver()
  }

  dropTooLate(nowUs: number): void {
    for (;;) {
      const [number, dueUs] = [...this.#held].toSorted(([a], [b]) => a - b)[0] ?? []
      if (number === undefined || dueUs! > nowUs) return
      this.#skipTo(number)
      this.#deliver()
    }
  }

  missing(): number[] {
    const numbers = []
    for (let n = this.next; n < this.end; n++) if (!this.#held.has(n)) numbers.push(n)
    return numbers
  }

  #skipTo(number: number): void {
    this.delivered.push(`gap ${number - this.next}`)
    this.dropped += number - this.next
    this.next = number
  }

  #deliver(): void {
    while (this.#held.delete(this.next)) this.delivered.push(this.next++)
  }
}
