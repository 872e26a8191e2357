import * as fc from 'fast-check'
import t from 'tap'
import { machineTimers, SteadyClock } from '../../src/timing/clock.ts'
import { until } from '../support/until.ts'

const MIN_US = 60_000_000
const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 0, 1)

/** A machine whose wall clock is set by the test. */
function setUp() {
  let nowUs = 5_000_000
  let stepMs = 0
  const clock = new SteadyClock({
    nowUs: () => nowUs,
    wallMs: () => START_MS + stepMs + (nowUs - 5_000_000) / 1000,
  })
  return {
    clock,
    step: (ms: number) => void (stepMs += ms),
    pass: (us: number) => void (nowUs += us),
    /** Lets time pass as a service sees it, which reads its clock all the time. */
    run: (minutes: number) => {
      for (let second = 0; second < minutes * 60; second++) {
        nowUs += 1_000_000
        clock.wallMs()
      }
    },
    /** Difference of the wall clock to one that was never set. */
    offMs: () => clock.wallMs() - (START_MS + (nowUs - 5_000_000) / 1000),
  }
}

t.test('ignores a jump of the wall clock that is reverted within 10 minutes', async (t) => {
  const { clock, step, run, offMs } = setUp()
  run(30)
  step(3 * HOUR_MS)
  run(9)
  t.equal(offMs(), 0)
  t.equal(clock.jumpMs, 3 * HOUR_MS)
  step(-3 * HOUR_MS)
  run(60)
  t.equal(offMs(), 0)
  t.equal(clock.jumpMs, 0)
})

t.test('adopts a jump that lasts for 10 minutes, ahead or back', async (t) => {
  const { clock, step, run, offMs } = setUp()
  for (const sign of [1, -1]) {
    const before = offMs()
    step(sign * 50 * HOUR_MS)
    run(9.9)
    t.equal(offMs(), before)
    run(0.2)
    t.equal(offMs(), before + sign * 50 * HOUR_MS)
    t.equal(clock.jumpMs, 0)
  }
})

t.test('restarts the 10 minutes at each further jump', async (t) => {
  const { step, run, offMs } = setUp()
  for (let jumps = 0; jumps < 20; jumps++) {
    step(HOUR_MS)
    run(9)
    t.equal(offMs(), 0)
  }
  run(1.1)
  t.equal(offMs(), 20 * HOUR_MS)
})

t.test('adopts a small correction within 10 minutes', async (t) => {
  const { clock, step, run, offMs } = setUp()
  run(5)
  step(300)
  t.equal(clock.jumpMs, 0, 'it is none to speak of')
  run(10.1)
  t.equal(offMs(), 300)
})

t.test('holds a jump for 10 minutes after hours without a reading', async (t) => {
  const { step, pass, run, offMs } = setUp()
  pass(300 * MIN_US)
  step(HOUR_MS)
  t.equal(offMs(), 0)
  run(10.1)
  t.equal(offMs(), HOUR_MS)
})

t.test('takes a suspended monotonic clock as a jump ahead', async (t) => {
  const { clock, step, run, offMs } = setUp()
  run(20)
  step(8 * HOUR_MS)
  run(1)
  t.equal(offMs(), 0)
  t.equal(clock.jumpMs, 8 * HOUR_MS)
  run(10)
  t.equal(offMs(), 8 * HOUR_MS)
})

t.test('advances wall time by the monotonic clock between adopted corrections', async () => {
  const event = fc.record({
    stepMs: fc.oneof(fc.constant(0), fc.integer({ min: -1e10, max: 1e10 })),
    sec: fc.integer({ min: 0, max: 400 }),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const { step, pass, offMs } = setUp()
      let before = offMs()
      let stoodSec = 0
      for (const { stepMs, sec } of events) {
        step(stepMs)
        stoodSec = Math.abs(stepMs) >= 1000 ? 0 : stoodSec
        pass(sec * 1_000_000)
        stoodSec += sec
        const now = offMs()
        if (now !== before && stoodSec < 600) throw new Error(`moved after ${stoodSec} s`)
        before = now
      }
    }),
  )
})

t.test('a sleep rejects once its signal aborts', async (t) => {
  const waiting = new AbortController()
  const sleep = machineTimers.sleep(1, waiting.signal)
  waiting.abort()
  await t.rejects(sleep, { name: 'AbortError' })
})

t.test('a task is called after each interval, until it is ended', async (t) => {
  let calls = 0
  const end = machineTimers.every(1, () => calls++)
  await until('two calls', () => calls >= 2, { everyMs: 1 })
  end()
  const before = calls
  // Node runs timers of the same length in the order in which they were set.
  await machineTimers.sleep(1)
  t.equal(calls, before)
})
