import * as fc from 'fast-check'
import t from 'tap'
import { LinkHealth } from '../../src/diagnosis/link-monitor.ts'
import type { PublisherReport } from '../../src/contract/report.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'

const SEC = 1_000_000

/** As often as a stream looks. */
const TICK_US = 250_000

/** What a second of the connection adds to its counters; RTT, latency and bitrate stand as they are given. */
type Second = Partial<PublisherReport>

/** A connection that is watched from its first moment on. */
function watch() {
  const link = new LinkHealth()
  const totals = {
    packetsReceived: 0,
    packetsLost: 0,
    packetsRetransmitted: 0,
    packetsDropped: 0,
    packetsUndecryptable: 0,
    packetsOverflowed: 0,
  }
  const begun: string[] = []
  let nowUs = 7 * SEC
  const look = (second: Second) => {
    const report = { ...PUBLISHER_REPORT, ...second, ...totals }
    begun.push(...link.observe(report, nowUs).map(({ code }) => code))
  }
  look({})
  return {
    link,
    /** Codes in the order in which the warnings began. */
    begun,
    /** Codes of the warnings that hold. */
    held: () => link.warnings.map(({ code }) => code),
    /** By default 1000 packets a second, all in order. */
    run: (seconds: number, second: Second = {}) => {
      for (let tick = 0; tick < (seconds * SEC) / TICK_US; tick++) {
        nowUs += TICK_US
        for (const name of Object.keys(totals) as (keyof typeof totals)[]) {
          totals[name] += ({ packetsReceived: 1000, ...second }[name] ?? 0) / 4
        }
        look(second)
      }
    },
  }
}

t.test('a good line has no warning, nor one that repairs what it loses', async (t) => {
  const { run, held, begun } = watch()
  run(60)
  run(60, { rttMs: 29, packetsLost: 100, packetsRetransmitted: 130, packetsReceived: 1030 })
  t.strictSame(held(), [])
  t.strictSame(begun, [])
})

t.test('a latency below four round trips is a warning once that stood for 5 s', async (t) => {
  const { run, held, begun, link } = watch()
  run(1, { rttMs: 100 })
  run(4.75, { rttMs: 100 })
  t.strictSame(held(), [], 'not after 4.75 s')
  run(0.25, { rttMs: 100.4 })
  t.strictSame(link.warnings, [
    {
      code: 'LATENCY_TOO_LOW',
      message:
        'the SRT latency is 120 ms and the round trip takes 101 ms: what is lost can hardly be sent again in time, which takes 4 round trips; set latency=460000 (microseconds) in the URL of ffmpeg or OBS, 460 (milliseconds) in other encoders, or SRT_LATENCY_MS=460 here',
    },
  ])
  run(60, { rttMs: 200 })
  t.match(link.warnings, [{ message: /latency=900000/ }], 'it says what is measured now')
  t.strictSame(begun, ['LATENCY_TOO_LOW'], 'and began once')
})

t.test('a round trip that is long for less than 5 s is none', async (t) => {
  const { run, begun } = watch()
  for (let turn = 0; turn < 10; turn++) {
    run(4, { rttMs: 100 })
    run(1.25, { rttMs: 20 })
  }
  t.strictSame(begun, [])
})

t.test('the warning ends at 4.5 round trips, so that it does not flicker', async (t) => {
  const { run, held, begun } = watch()
  run(7, { rttMs: 31 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'])
  for (let turn = 0; turn < 20; turn++) {
    run(2, { rttMs: 29 })
    run(7, { rttMs: 31 })
  }
  t.strictSame(begun, ['LATENCY_TOO_LOW'])
  run(1.25, { rttMs: 26 })
  t.strictSame(held(), [])
  run(60, { rttMs: 29.9 })
  t.strictSame(held(), [], 'four round trips are enough')
})

t.test('whoever sets what it says has no warning any more', async () => {
  const rtts = fc.double({ min: 31, max: 1700, noNaN: true })
  fc.assert(
    fc.property(rtts, (rttMs) => {
      const { run, link } = watch()
      run(7, { rttMs })
      const advisedMs = Number(/SRT_LATENCY_MS=(\d+)/.exec(link.warnings[0]!.message)![1])
      run(1.25, { rttMs, latencyMs: advisedMs })
      return link.warnings.length === 0 && advisedMs < 4.5 * rttMs + 10
    }),
  )
})

t.test('8 s are the most that can be set', async (t) => {
  const { run, link, held } = watch()
  run(7, { rttMs: 3000 })
  t.match(link.warnings, [{ message: /latency=8000000 .* SRT_LATENCY_MS=8000 here$/ }])
  run(60, { rttMs: 3000, latencyMs: 8000 })
  t.strictSame(held(), [], 'nobody is told to do what cannot be done')
})

t.test('without packets nothing is known of the round trip', async (t) => {
  const { run, begun, held } = watch()
  run(60, { rttMs: 100, packetsReceived: 0 })
  run(1, { rttMs: 100 })
  run(60, { rttMs: 100, packetsReceived: 0 })
  t.strictSame(begun, [], 'the preset before the first one does not count')
  run(1, { rttMs: 1 })
  run(7, { rttMs: 100 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'])
  run(60, { rttMs: 1, packetsReceived: 0 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'], 'nor does an old one')
})

t.test('more than 0.1 % given up in 10 s is a warning, with figures', async (t) => {
  const { run, link, held, begun } = watch()
  // 10 are sent a second that nobody hears of but as lost; 4 of them come again.
  const lossy = { packetsLost: 10, packetsRetransmitted: 4, packetsDropped: 6, rttMs: 20 }
  run(9, { ...lossy, packetsReceived: 994, bitrateBps: 8_230_000 })
  t.strictSame(held(), [], 'a window is 10 s')
  run(2, { ...lossy, packetsReceived: 994, bitrateBps: 8_230_000 })
  t.strictSame(link.warnings, [
    {
      code: 'LOSSES_NOT_REPAIRED',
      message:
        'of the packets of the last 10 s 1 % were lost on the way and 0.6 % could not be repaired, though the SRT latency of 120 ms is enough for round trips of 20 ms: the line does not carry what the encoder sends (8.2 Mbit/s arrive), or fails for seconds; lower the bitrate of the encoder, or raise the latency',
    },
  ])
  run(9)
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
  run(3)
  t.strictSame(held(), [], '10 s later they are history')
  t.strictSame(begun, ['LOSSES_NOT_REPAIRED'])
})

t.test('up to 0.1 % given up is none; once begun it ends at 0.05 %', async (t) => {
  const { run, held, begun } = watch()
  const givenUp = (perSec: number) => ({ packetsReceived: 1000 - perSec, packetsLost: perSec })
  const drop = (perSec: number) => ({ ...givenUp(perSec), packetsDropped: perSec })
  run(60, drop(1))
  t.strictSame(held(), [])
  run(12, drop(1.1))
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
  run(60, drop(0.6))
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
  run(12, drop(0.5))
  t.strictSame(held(), [])
  run(60, drop(0.6))
  t.strictSame(begun, ['LOSSES_NOT_REPAIRED'])
})

t.test('what is sent again counts as sent once', async (t) => {
  const { run, held } = watch()
  run(12, { packetsLost: 400, packetsRetransmitted: 400, packetsDropped: 1.2 })
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
})

t.test('an outage in which nothing at all came is not divided by', async (t) => {
  const { run, link } = watch()
  run(12, { packetsReceived: 0 })
  t.strictSame(link.warnings, [])
  run(1, { packetsReceived: 1, packetsLost: 12_000, packetsDropped: 12_000 })
  t.match(link.warnings, [{ code: 'LOSSES_NOT_REPAIRED', message: / 100 % could not be/ }])
  run(12, { packetsReceived: 0, packetsDropped: 10 })
  t.match(link.warnings, [{ message: / 0 % were lost on the way and 100 % could not be/ }])
})

t.test('losses are not blamed on the line where the latency explains them', async (t) => {
  const { run, held, begun } = watch()
  run(30, { rttMs: 100, packetsLost: 50, packetsDropped: 50 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'])
  t.strictSame(begun, ['LATENCY_TOO_LOW'])
  run(1.25, { rttMs: 100, latencyMs: 460, packetsLost: 50, packetsDropped: 50 })
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
})

t.test('packets that cannot be decrypted, and packets beyond the window', async (t) => {
  const { run, link, held, begun } = watch()
  run(2)
  const stray = { packetsLost: 8, packetsDropped: 8, bitrateBps: 40_000_000 }
  run(2, { ...stray, packetsUndecryptable: 8, packetsOverflowed: 4 })
  t.strictSame(link.warnings, [
    {
      code: 'PACKETS_UNDECRYPTABLE',
      message:
        "packets could not be decrypted, 16 in the last 10 s: the encoder changed its key and the new one did not arrive, or they are in clear and somebody else's; let the encoder connect again",
    },
    {
      code: 'WINDOW_OVERFLOW',
      message:
        'packets came too far ahead of a missing one to be kept, 8 in the last 10 s: 40.0 Mbit/s over a latency of 120 ms are more than the encoder was told it may send ahead; lower the bitrate or the latency of the encoder',
    },
  ])
  run(8)
  t.strictSame(held(), ['PACKETS_UNDECRYPTABLE', 'WINDOW_OVERFLOW'])
  run(4)
  t.strictSame(held(), [])
  t.strictSame(begun, ['PACKETS_UNDECRYPTABLE', 'WINDOW_OVERFLOW'])
  run(1, { packetsOverflowed: 4 })
  t.strictSame(begun.slice(2), ['WINDOW_OVERFLOW'], 'what comes again begins again')
})
