import t from 'tap'
import { Pacer } from '../../src/srt/send/pacer.ts'
import { RateMeter } from '../../src/srt/rate-meter.ts'
import { RttEstimator } from '../../src/srt/rtt-estimator.ts'
import { DeliveryClock } from '../../src/srt/receive/delivery-clock.ts'

t.test('the RTT starts at 100 ms and takes the first sample as it is (4.10; libsrt)', async (t) => {
  const rtt = new RttEstimator()
  t.strictSame([rtt.rttUs, rtt.varianceUs, rtt.responseTimeoutUs], [100_000, 50_000, 300_000])
  rtt.push(1000)
  t.strictSame([rtt.rttUs, rtt.varianceUs], [1000, 500])
  rtt.push(1800)
  // The variance is moved before the mean: 500 + (800 - 500) / 4, then 1000 + 800 / 8.
  t.strictSame([rtt.rttUs, rtt.varianceUs, rtt.responseTimeoutUs], [1100, 575, 3400])
})

t.test('adopts the RTT of the peer, and smooths from there', async (t) => {
  const rtt = new RttEstimator()
  rtt.adopt(8000, 4000)
  rtt.push(16_000)
  t.strictSame([rtt.rttUs, rtt.varianceUs], [9000, 5000])
})

t.test("a packet is due its latency after its sender's clock says so (4.5.1)", async (t) => {
  const clock = new DeliveryClock({
    handshakeTimestampUs: 3_000_000,
    handshakeArrivedUs: 10_000_000,
    latencyUs: 120_000,
  })
  t.equal(clock.deliveryUs(3_000_000, 10_000_000), 10_120_000)
  t.equal(clock.deliveryUs(4_000_000, 15_000_000), 11_120_000, 'late or not')
})

t.test('delivery times continue across two wraps of the timestamp (4.5.1.2)', async (t) => {
  const clock = new DeliveryClock({
    handshakeTimestampUs: 0,
    handshakeArrivedUs: 50_000,
    latencyUs: 100_000,
  })
  const minuteUs = 60e6
  for (let minute = 1; minute < 150; minute++) {
    const sentUs = minute * minuteUs
    t.equal(clock.deliveryUs(sentUs % 2 ** 32, sentUs + 50_000), sentUs + 150_000)
  }
})

t.test('a delivery time is at most 2 s plus the latency in the future', async (t) => {
  const clock = new DeliveryClock({
    handshakeTimestampUs: 0,
    handshakeArrivedUs: 0,
    latencyUs: 100_000,
  })
  t.equal(clock.deliveryUs(3_000_000, 1_000_000), 3_100_000, '2 s ahead: a jittery path')
  t.equal(clock.deliveryUs(3_000_001, 1_000_000), 1_100_000, 'more: a broken clock')
})

t.test(
  'delivery times follow the fastest packet of each 10 s, by at most 1 ms/s (4.7)',
  async (t) => {
    const clock = new DeliveryClock({
      handshakeTimestampUs: 0,
      handshakeArrivedUs: 0,
      latencyUs: 100_000,
    })
    /** Packets for `seconds`: every tenth is late by `lagUs`, the others by 50 ms more. */
    const run = (fromSec: number, seconds: number, lagUs: number) => {
      for (let i = 0; i < seconds * 10; i++) {
        const sentUs = fromSec * 1e6 + i * 1e5
        clock.deliveryUs(sentUs, sentUs + lagUs + (i % 10 === 0 ? 0 : 50_000))
      }
    }
    run(0, 11, 3000)
    t.equal(clock.driftUs, 3000, 'all of a little drift')
    run(11, 11, 40_000)
    t.equal(clock.driftUs, 13_000, '10 ms of a longer path')
    run(22, 30, 40_000)
    t.equal(clock.driftUs, 40_000, 'and the rest in time')
    run(52, 11, 35_000)
    t.equal(clock.driftUs, 35_000, 'back as well')
    t.equal(clock.deliveryUs(70_000_000, 70_000_000), 70_135_000)
  },
)

t.test('delivery times follow a clock that was set back after 10 s', async (t) => {
  const clock = new DeliveryClock({
    handshakeTimestampUs: 0,
    handshakeArrivedUs: 0,
    latencyUs: 100_000,
  })
  for (let nowUs = 0; nowUs < 30e6; nowUs += 1e5) {
    clock.deliveryUs((nowUs - 600e6) >>> 0, nowUs)
  }
  t.equal(clock.driftUs, 600e6)
  t.equal(clock.deliveryUs((30e6 - 600e6) >>> 0, 30e6), 30_100_000)
  t.equal(clock.deliveryUs((130e6 - 600e6) >>> 0, 31e6), 31_100_000, 'one astray is nothing')
  t.equal(clock.driftUs, 600e6)
})

t.test('a pacer sends up to 10 ms of data ahead, headers included (5.1)', async (t) => {
  const pacer = new Pacer(8_000_000)
  pacer.countSent(4972, 0)
  t.ok(pacer.maySend(0), '5 ms are spent')
  pacer.countSent(4972, 0)
  t.notOk(pacer.maySend(0), '10 ms are')
  t.ok(pacer.maySend(1))
  pacer.countSent(972, 60_000)
  t.ok(pacer.maySend(60_000), 'silence saves nothing up')
  pacer.countSent(8972, 60_000)
  t.notOk(pacer.maySend(60_000))
})

t.test('a rate meter reports the last full second', async (t) => {
  const rate = new RateMeter(0)
  rate.tick({ packets: 500, bytes: 50_000 }, 500_000)
  t.equal(rate.bytesPerSec, 0)
  rate.tick({ packets: 1000, bytes: 100_000 }, 1_000_000)
  t.strictSame([rate.packetsPerSec, rate.bytesPerSec], [1000, 100_000])
  rate.tick({ packets: 1000, bytes: 100_000 }, 2_250_000)
  t.strictSame([rate.packetsPerSec, rate.bytesPerSec], [0, 0])
})
