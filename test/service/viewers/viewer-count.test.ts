import * as fc from 'fast-check'
import t from 'tap'
import { ViewerCount } from '../../../src/service/viewers/viewer-count.ts'

/** @param atSec  time of the requests */
function pushMany(count: ViewerCount, prefix: string, viewers: number, atSec: number): void {
  for (let i = 0; i < viewers; i++) count.push([`${prefix}-${i}`], atSec * 1e6)
}

t.test('counts like a list of all viewers and their last requests', async () => {
  const request = fc.record({
    viewer: fc.oneof(
      fc.tuple(fc.constantFrom('a', 'b', 'ab', '')),
      fc.tuple(fc.constantFrom('a', 'b', 'ab', ''), fc.constantFrom('a', 'b', 'ab', '')),
    ),
    pauseUs: fc.oneof(fc.nat(2_000_000), fc.nat(40_000_000)),
  })
  fc.assert(
    fc.property(fc.array(request, { maxLength: 100 }), fc.integer(), (requests, salt) => {
      const count = new ViewerCount(() => salt)
      const seenSec = new Map<string, number>()
      let nowUs = 0
      return requests.every(({ viewer, pauseUs }) => {
        nowUs += pauseUs
        const nowSec = Math.floor(nowUs / 1e6)
        const present = () => [...seenSec.values()].filter((sec) => nowSec - sec <= 30).length
        const before = count.count(nowUs) === present()
        count.push(viewer, nowUs)
        seenSec.set(viewer.join('\n') + viewer.length, nowSec)
        return before && count.count(nowUs) === present()
      })
    }),
  )
})

t.test('a viewer counts for 30 s after the last request', async (t) => {
  const count = new ViewerCount(() => 1)
  count.push(['a'], 0)
  count.push(['b'], 0)
  count.push(['a'], 10e6)
  t.equal(count.count(30e6), 2)
  t.equal(count.count(31e6), 1)
  t.equal(count.count(40e6), 1)
  t.equal(count.count(41e6), 0)
})

t.test('is exact up to its limit, and estimates above, with bounded memory', async (t) => {
  for (const salt of [0, 1, -7, 0x7fffffff, 12345678]) {
    const count = new ViewerCount(() => salt)
    pushMany(count, 'viewer', 4096, 0)
    t.equal(count.count(0), 4096)
    for (const viewers of [10_000, 100_000]) {
      pushMany(count, 'viewer', viewers, 0)
      const error = count.count(0) / viewers - 1
      t.ok(Math.abs(error) < 0.08, `${viewers} viewers: ${(error * 100).toFixed(1)} %`)
    }
  }
})

t.test('is exact again after a flood of forged session ids', async (t) => {
  let salts = 0
  const count = new ViewerCount(() => salts++)
  pushMany(count, 'forged', 200_000, 0)
  for (let sec = 0; sec <= 65; sec++) pushMany(count, 'viewer', 10, sec)
  t.equal(count.count(65e6), 10)
})

t.test('another salt loses no viewer and counts none twice', async (t) => {
  let salts = 0
  const count = new ViewerCount(() => salts++)
  const startSec = 24 * 60 * 60 - 60
  count.push(['first'], 0)
  const counts = new Set<number>()
  for (let sec = startSec; sec < startSec + 120; sec += 6) {
    pushMany(count, 'viewer', 50, sec)
    counts.add(count.count((sec + 5) * 1e6))
  }
  t.strictSame([...counts], [50])
  t.equal(salts, 2)
})
