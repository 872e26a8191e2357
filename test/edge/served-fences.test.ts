/**
 * What an edge remembers of the owners whose replies it has served.
 */
import t from 'tap'
import { ServedFences } from '../../src/edge/served-fences.ts'

t.test('refuses a lower fence for two minutes after the latest reply', async (t) => {
  const fences = new ServedFences()
  const admit = (fence: number, sec: number) => fences.admit('demo', fence, sec * 1e6)
  t.equal(admit(7, 0), true)
  t.equal(admit(6, 1), false)
  t.equal(admit(7, 100), true)
  t.equal(admit(6, 219), false)
  t.equal(fences.admit('other', 6, 219e6), true)
  t.equal(admit(6, 220), true)
  t.equal(admit(5, 221), false)
})

t.test('streams that no node owns do not displace those that were served', async (t) => {
  const fences = new ServedFences()
  fences.admit('demo', 7, 0)
  for (let n = 0; n < 150_000; n++) fences.admit(`x${n}`, 0, 0)
  t.equal(fences.admit('demo', 6, 0), false)
})
