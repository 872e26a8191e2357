import t from 'tap'
import {
  MIN_BYTES_PER_SEC,
  RATE_WINDOW_MS,
  ReaderProgress,
} from '../../../src/http/guard/reader-progress.ts'

/** Looks once a second at a reader that takes `bytesAt(second)` in all. @returns seconds at which it was too slow */
function slowSeconds(seconds: number, bytesAt: (second: number) => number, waiting = 1): number[] {
  const progress = new ReaderProgress()
  return Array.from({ length: seconds }, (_, second) => second).filter((second) =>
    progress.observe(bytesAt(second), waiting, second * 1000),
  )
}

t.test('reports a reader of single bytes as slow after a window', async (t) => {
  t.strictSame(
    slowSeconds(100, () => 0),
    [60],
  )
  t.strictSame(
    slowSeconds(100, (second) => Math.floor(second / 20) * 16 * 1024),
    [60],
  )
  t.strictSame(
    slowSeconds(100, (second) => second * (MIN_BYTES_PER_SEC - 1)),
    [60],
  )
})

t.test('accepts a reader at the minimum rate in any steps of the kernel', async (t) => {
  t.strictSame(
    slowSeconds(1000, (second) => second * MIN_BYTES_PER_SEC),
    [],
  )
  // A third of a send buffer of 4 MB, at 32 kB/s.
  const step = 1.3e6
  t.strictSame(
    slowSeconds(1000, (second) => Math.floor((second * 32_000) / step) * step),
    [],
  )
})

t.test('resets the window while no bytes wait', async (t) => {
  t.strictSame(
    slowSeconds(1000, () => 0, 0),
    [],
  )
  const progress = new ReaderProgress()
  const window = RATE_WINDOW_MS
  t.notOk(progress.observe(0, 1, 0))
  t.notOk(progress.observe(0, 0, window - 1))
  t.notOk(progress.observe(0, 1, window))
  t.notOk(progress.observe(0, 1, 2 * window - 1))
  t.ok(progress.observe(0, 1, 2 * window))
})

t.test('returns the rate of this window, or of the last one in its first second', async (t) => {
  const progress = new ReaderProgress()
  t.equal(progress.bytesPerSec(500, 0), Infinity, 'nothing seen yet')
  progress.observe(1000, 1, 5000)
  t.equal(progress.bytesPerSec(1000, 5000), Infinity)
  t.equal(progress.bytesPerSec(9000, 7000), 4000)
  progress.observe(9000, 0, 7000)
  progress.observe(9000, 1, 8000)
  t.equal(progress.bytesPerSec(9000, 8000), 4000, 'a new reply')
  t.equal(progress.bytesPerSec(9000, 9000), 0)
})

t.test('reports a fast download as fast in each of its seconds', async (t) => {
  const progress = new ReaderProgress()
  for (let second = 0; second <= 200; second++) {
    progress.observe(second * 2e6, 1e6, second * 1000)
    if (second > 0) t.equal(progress.bytesPerSec(second * 2e6, second * 1000), 2e6)
  }
})
