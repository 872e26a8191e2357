import * as fc from 'fast-check'
import t from 'tap'
import { ActiveWarnings } from '../../src/diagnosis/active-warnings.ts'
import { LinkMonitor } from '../../src/diagnosis/link-monitor.ts'
import type { ConnectionReport, LineReport, SrtCounters } from '../../src/api/records.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'

const SEC = 1_000_000

const { remote, bitrateBps, bytesReceived, packetsReceived, packetsRetransmitted } =
  PUBLISHER_REPORT
const counters = { bytesReceived, packetsReceived, packetsRetransmitted }
const LINE: LineReport = { line: 1, remote, bitrateBps, ...counters }

/** Interval of `LiveStream.tick`. */
const TICK_US = 250_000

/** Additions of a second to the counters; RTT, latency and bitrate are set as given. */
type Second = Partial<ConnectionReport & SrtCounters>

/** A connection observed from its first moment on. */
function watch() {
  const link = new LinkMonitor()
  const totals = {
    packetsReceived: 0,
    packetsLost: 0,
    packetsRetransmitted: 0,
    packetsDropped: 0,
    packetsUndecryptable: 0,
    packetsOverflowed: 0,
  }
  const begun: string[] = []
  const warnings = new ActiveWarnings(({ code }) => begun.push(code))
  let nowUs = 7 * SEC
  const observe = (second: Second) => {
    const report = { ...PUBLISHER_REPORT, ...second, ...totals }
    warnings.observe(link.observe(report, nowUs), nowUs)
  }
  observe({})
  return {
    warnings,
    /** Codes in the order in which the warnings began. */
    begun,
    /** Codes of the warnings that hold. */
    held: () => warnings.list.map(({ code }) => code),
    /** Runs for `seconds`; default: 1000 packets in order in each second. */
    run: (seconds: number, second: Second = {}) => {
      for (let tick = 0; tick < (seconds * SEC) / TICK_US; tick++) {
        nowUs += TICK_US
        for (const name of Object.keys(totals) as (keyof typeof totals)[]) {
          totals[name] += ({ packetsReceived: 1000, ...second }[name] ?? 0) / 4
        }
        observe(second)
      }
    },
  }
}

t.test('a line without losses, or with losses that are repaired, has no warning', async (t) => {
  const { run, held, begun } = watch()
  run(60)
  run(60, { rttMs: 29, packetsLost: 100, packetsRetransmitted: 130, packetsReceived: 1030 })
  t.strictSame(held(), [])
  t.strictSame(begun, [])
})

t.test('warns of a line that is gone, but not of one that goes on from another port', async (t) => {
  const { run, held, warnings } = watch()
  const lines = (count: number) => ({ lines: Array.from({ length: count }, () => LINE) })
  run(20, lines(2))
  run(10, lines(3))
  run(20, lines(2))
  t.strictSame(held(), [])
  run(1, lines(1))
  t.match(warnings.list, [{ code: 'LINE_GONE', message: /^1 of the encoder's 2 lines is gone\./ }])
  run(1, lines(2))
  t.strictSame(held(), [])
})

t.test('warns of a latency below four round trips after 5 s', async (t) => {
  const { run, held, begun, warnings } = watch()
  run(1, { rttMs: 100 })
  run(4.75, { rttMs: 100 })
  t.strictSame(held(), [], 'not after 4.75 s')
  run(0.25, { rttMs: 100.4 })
  t.strictSame(warnings.list, [
    {
      code: 'LATENCY_TOO_LOW',
      message:
        'Latency is 120 ms, 4 round trips take 402. Viewers may see losses. Set latency=460000 (ffmpeg, OBS: microseconds) or SRT_LATENCY_MS=460.',
    },
  ])
  run(60, { rttMs: 200 })
  t.match(warnings.list, [{ message: /latency=900000/ }], 'it says what is measured now')
  t.strictSame(begun, ['LATENCY_TOO_LOW'], 'and began once')
})

t.test('does not warn of a round trip that is long for less than 5 s', async (t) => {
  const { run, begun } = watch()
  for (let turn = 0; turn < 10; turn++) {
    run(4, { rttMs: 100 })
    run(1.25, { rttMs: 20 })
  }
  t.strictSame(begun, [])
})

t.test('LATENCY_TOO_LOW ends at 4.5 round trips and does not flicker', async (t) => {
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

t.test('the latency that LATENCY_TOO_LOW advises ends the warning', async () => {
  const rtts = fc.double({ min: 31, max: 1700, noNaN: true })
  fc.assert(
    fc.property(rtts, (rttMs) => {
      const { run, warnings } = watch()
      run(7, { rttMs })
      const advisedMs = Number(/SRT_LATENCY_MS=(\d+)/.exec(warnings.list[0]!.message)![1])
      run(1.25, { rttMs, latencyMs: advisedMs })
      return warnings.list.length === 0 && advisedMs < 4.5 * rttMs + 10
    }),
  )
})

t.test('does not warn of a latency of 8 s, the longest that can be set', async (t) => {
  const { run, warnings, held } = watch()
  run(7, { rttMs: 3000 })
  t.match(warnings.list, [{ message: /latency=8000000 .* SRT_LATENCY_MS=8000\.$/ }])
  run(60, { rttMs: 3000, latencyMs: 8000 })
  t.strictSame(held(), [], 'no advice beyond the limit')
})

t.test('ignores the round trip time while no packets arrive', async (t) => {
  const { run, begun, held } = watch()
  run(60, { rttMs: 100, packetsReceived: 0 })
  run(1, { rttMs: 100 })
  run(60, { rttMs: 100, packetsReceived: 0 })
  t.strictSame(begun, [], 'the preset round trip time does not count')
  run(1, { rttMs: 1 })
  run(7, { rttMs: 100 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'])
  run(60, { rttMs: 1, packetsReceived: 0 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'], 'an old round trip time does not end it')
})

t.test('warns with figures when more than 0.1 % of 10 s are not repaired', async (t) => {
  const { run, warnings, held, begun } = watch()
  // 10 of 1000 packets a second are lost, 4 of them repaired.
  const lossy = { packetsLost: 10, packetsRetransmitted: 4, packetsDropped: 6, rttMs: 20 }
  run(9, { ...lossy, packetsReceived: 994, bitrateBps: 8_230_000 })
  t.strictSame(held(), [], 'a window is 10 s')
  run(2, { ...lossy, packetsReceived: 994, bitrateBps: 8_230_000 })
  t.strictSame(warnings.list, [
    {
      code: 'LOSSES_NOT_REPAIRED',
      message:
        '1 % lost, 0.6 % not repaired (latency 120 ms, RTT 20 ms). Viewers see holes. Lower the bitrate (now 8.23 Mbit/s) or raise latency.',
    },
  ])
  run(9)
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
  run(3)
  t.strictSame(held(), [], '10 s later it is over')
  t.strictSame(begun, ['LOSSES_NOT_REPAIRED'])
})

t.test('LOSSES_NOT_REPAIRED begins above 0.1 % and ends at 0.05 %', async (t) => {
  const { run, held, begun } = watch()
  const lost = (perSec: number) => ({ packetsReceived: 1000 - perSec, packetsLost: perSec })
  const drop = (perSec: number) => ({ ...lost(perSec), packetsDropped: perSec })
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

t.test('counts a retransmitted packet as sent once', async (t) => {
  const { run, held } = watch()
  run(12, { packetsLost: 400, packetsRetransmitted: 400, packetsDropped: 1.2 })
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
})

t.test('gives a share of 100 % at most, also in an outage without packets', async (t) => {
  const { run, warnings } = watch()
  run(12, { packetsReceived: 0 })
  t.strictSame(warnings.list, [])
  run(1, { packetsReceived: 1, packetsLost: 12_000, packetsDropped: 12_000 })
  t.match(warnings.list, [{ code: 'LOSSES_NOT_REPAIRED', message: / 100 % not repaired/ }])
  run(12, { packetsReceived: 0, packetsDropped: 10 })
  t.match(warnings.list, [{ message: /^0 % lost, 100 % not repaired/ }])
})

t.test('does not warn of losses that a short latency explains', async (t) => {
  const { run, held, begun } = watch()
  run(30, { rttMs: 100, packetsLost: 50, packetsDropped: 50 })
  t.strictSame(held(), ['LATENCY_TOO_LOW'])
  t.strictSame(begun, ['LATENCY_TOO_LOW'])
  run(1.25, { rttMs: 100, latencyMs: 460, packetsLost: 50, packetsDropped: 50 })
  t.strictSame(held(), ['LOSSES_NOT_REPAIRED'])
})

t.test('warns of packets that cannot be decrypted and of packets beyond the window', async (t) => {
  const { run, warnings, held, begun } = watch()
  run(2)
  const stray = { packetsLost: 8, packetsDropped: 8, bitrateBps: 40_000_000 }
  run(2, { ...stray, packetsUndecryptable: 8, packetsOverflowed: 4 })
  t.strictSame(warnings.list, [
    {
      code: 'PACKETS_UNDECRYPTABLE',
      message:
        '16 packets in 10 s could not be decrypted. Viewers see holes. Reconnect the encoder, with the passphrase of this stream.',
    },
    {
      code: 'WINDOW_OVERFLOW',
      message:
        '8 packets in 10 s outran a missing one (40 Mbit/s, latency 120 ms). Viewers see holes. Lower bitrate or latency.',
    },
  ])
  run(8)
  t.strictSame(held(), ['PACKETS_UNDECRYPTABLE', 'WINDOW_OVERFLOW'])
  run(4)
  t.strictSame(held(), [])
  t.strictSame(begun, ['PACKETS_UNDECRYPTABLE', 'WINDOW_OVERFLOW'])
  run(1, { packetsOverflowed: 4 })
  t.strictSame(begun.slice(2), ['WINDOW_OVERFLOW'], 'warns again of a condition that returns')
})

t.test('has no facts about an encoder without SRT', async (t) => {
  const link = new LinkMonitor()
  const report = { remote: '192.0.2.1:5000', bitrateBps: 5_000_000, bytesReceived: 0 }
  for (let second = 0; second < 20; second++) {
    t.strictSame(link.observe(report, second * SEC), [])
  }
})
