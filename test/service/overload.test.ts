import t from 'tap'
import { OverloadJudge } from '../../src/service/overload.ts'

const BEHIND = { utilization: 1, drops: 500, encoders: 140 }
const BUSY = { ...BEHIND, drops: 0 }
const CALM = { utilization: 0.5, drops: 0, encoders: 140 }

t.test('refuses encoders after two seconds of kernel drops with a busy loop', async (t) => {
  const judge = new OverloadJudge()
  judge.observe(BEHIND)
  t.notOk(judge.overloaded, 'a short stall')
  judge.observe(BEHIND)
  t.ok(judge.overloaded)
})

t.test('takes neither a busy loop nor drops alone for overload', async (t) => {
  const judge = new OverloadJudge()
  for (let second = 0; second < 60; second++) {
    t.equal(judge.observe(BUSY), 0)
    t.equal(judge.observe({ ...BEHIND, utilization: 0.5 }), 0)
  }
  t.notOk(judge.overloaded)
})

t.test(
  'disconnects an eighth of the encoders every two seconds while drops continue',
  async (t) => {
    const judge = new OverloadJudge()
    let encoders = 140
    const counts = Array.from({ length: 7 }, () => {
      const count = judge.observe({ ...BEHIND, encoders })
      encoders -= count
      return count
    })
    t.strictSame(counts, [0, 0, 18, 0, 16, 0, 14])
    t.equal(judge.observe({ ...BUSY, encoders }), 0)
  },
)

t.test('keeps the encoder that connected first', async (t) => {
  const judge = new OverloadJudge()
  const counts = (encoders: number) =>
    Array.from({ length: 6 }, () => judge.observe({ ...BEHIND, encoders }))
  t.ok(counts(2).every((count) => count <= 1))
  t.ok(counts(1).every((count) => count === 0))
  t.ok(counts(0).every((count) => count === 0))
})

t.test('admits encoders again after five calm seconds', async (t) => {
  const judge = new OverloadJudge()
  for (let second = 0; second < 3; second++) judge.observe(BEHIND)
  for (let second = 0; second < 30; second++) judge.observe(BUSY)
  t.ok(judge.overloaded, 'one more would bring drops again')
  for (let second = 0; second < 4; second++) judge.observe(CALM)
  t.ok(judge.overloaded)
  judge.observe(CALM)
  t.notOk(judge.overloaded)
})
