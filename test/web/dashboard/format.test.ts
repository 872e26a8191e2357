import t from 'tap'
import { withShare } from '../../../src/web/dashboard/format.ts'

t.test('a number has its share of all, where both are known', async (t) => {
  t.equal(withShare(12, 4000), '12 (0.3 %)')
  t.equal(withShare(1, 4000), '1 (<0.1 %)')
  t.equal(withShare(0, 4000), '0')
  t.equal(withShare(undefined, 4000), '–')
  t.equal(withShare(5, undefined), '5')
  t.equal(withShare(5, 0), '5')
})
