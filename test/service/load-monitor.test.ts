import t from 'tap'
import { SteadyClock } from '../../src/timing/clock.ts'
import { LoadJudge, LoadMonitor, type LoadReading } from '../../src/service/load-monitor.ts'
import { until } from '../support/until.ts'

const SEC = 1_000_000
const CALM: LoadReading = {
  ...{ loopDelayMsP99: 3, loopDelayMsMax: 40 },
  ...{ kernelDrops: 0, clockJumpMs: 0 },
}

t.test('warns of a late event loop at most once a minute', async (t) => {
  const judge = new LoadJudge()
  t.strictSame(judge.observe(CALM, 0), [])
  const late = { ...CALM, loopDelayMsP99: 100, loopDelayMsMax: 12_345 }
  const warnings = Array.from({ length: 30 }, (_, span) => judge.observe(late, span * 10 * SEC))
  t.strictSame(
    warnings.map(({ length }) => length),
    Array.from({ length: 30 }, (_, span) => (span % 6 === 0 ? 1 : 0)),
  )
  t.match(warnings[0]![0], /100 ms .*12345 ms.*Viewers .*\. Run fewer/)
  t.ok(warnings[0]![0]!.length <= 160, 'at most 160 characters')
})

t.test('warns of a single long stall', async (t) => {
  const judge = new LoadJudge()
  t.equal(judge.observe({ ...CALM, loopDelayMsMax: 1000 }, 0).length, 1)
})

t.test('warns of a jump of the wall clock once, and not of its reversion', async (t) => {
  const judge = new LoadJudge()
  const jumped = { ...CALM, clockJumpMs: -10_800_000 }
  const counts = [CALM, jumped, jumped, CALM, CALM, jumped].map(
    (reading, span) => judge.observe(reading, span * 10 * SEC).length,
  )
  t.strictSame(counts, [0, 1, 0, 0, 0, 1])
  const [message] = new LoadJudge().observe(jumped, 0)
  t.match(message, 'jumped 10800 s back')
  t.ok(message!.length <= 160)
})

t.test('measures the load of a running process', async (t) => {
  const clock = new SteadyClock({ nowUs: () => performance.now() * 1000, wallMs: () => Date.now() })
  const readKernelDrops = async () => 18
  const monitor = new LoadMonitor({ clock, readKernelDrops, onWarning: (text) => t.fail(text) })
  t.teardown(() => monitor.close())
  const { kernelDrops } = await until('a reading', () =>
    monitor.load.kernelDrops === undefined ? undefined : monitor.load,
  )
  t.equal(kernelDrops, 18)
})
