import t from 'tap'
import { IntervalLimiter } from '../../src/timing/interval-limiter.ts'

t.test('passes each name once in an interval', async (t) => {
  const limiter = new IntervalLimiter(10)
  const passed = [0, 5, 9, 10, 19, 20].filter((nowUs) => limiter.take('loop', nowUs))
  t.strictSame(passed, [0, 10, 20])
  t.equal(limiter.take('drops', 20), true)
  t.equal(limiter.take('drops', 29), false)
})
