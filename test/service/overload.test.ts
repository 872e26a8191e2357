import t from 'tap'
import { OverloadJudge } from '../../src/service/overload.ts'

const BEHIND = {
  utilization: 1,
  drops: 20_000,
  datagrams: 40_000,
  connectionDatagrams: 39_000,
  encoders: 140,
  surges: 0,
}
const BUSY = { ...BEHIND, drops: 0 }
const CALM = { ...BUSY, utilization: 0.5 }

t.test('refuses encoders after two seconds of overload', async (t) => {
  const judge = new OverloadJudge()
  judge.observe(BEHIND)
  t.notOk(judge.overloaded, 'a short stall')
  judge.observe(BEHIND)
  t.ok(judge.overloaded)
})

t.test('takes no minute of these for overload', async (t) => {
  const cases = {
    'a busy event loop without drops': BUSY,
    'drops in short stalls of an idle event loop': { ...BEHIND, utilization: 0.5 },
    'single drops, which SRT repairs': { ...BEHIND, drops: 100 },
    'a flood by strangers': { ...BEHIND, connectionDatagrams: 24_000 },
  }
  for (const [name, second] of Object.entries(cases)) {
    const judge = new OverloadJudge()
    const counts = Array.from({ length: 60 }, () => judge.observe(second))
    t.notOk(judge.overloaded, name)
    t.ok(
      counts.every((count) => count === 0),
      name,
    )
  }
})

t.test('disconnects an eighth of the encoders every two seconds while that helps', async (t) => {
  const judge = new OverloadJudge()
  let [encoders, drops] = [140, 20_000]
  const counts = Array.from({ length: 7 }, () => {
    const count = judge.observe({ ...BEHIND, encoders, drops })
    encoders -= count
    drops -= count * 100
    return count
  })
  t.strictSame(counts, [0, 0, 18, 0, 16, 0, 14])
  t.equal(judge.observe({ ...BUSY, encoders }), 0)
})

t.test('waits twice as long each time where that has not helped', async (t) => {
  const judge = new OverloadJudge()
  // Drops that vary by themselves are judged once.
  const secondsOf = (drops: (second: number) => number) => {
    const counts = Array.from({ length: 62 }, (_, index) =>
      judge.observe({ ...BEHIND, drops: drops(index + 1) }),
    )
    judge.observe(CALM)
    return counts.flatMap((count, index) => (count > 0 ? [index + 1] : []))
  }
  t.strictSame(
    secondsOf(() => 20_000),
    [3, 7, 15, 31],
  )
  t.strictSame(
    secondsOf((second) => (second % 4 === 0 ? 15_000 : 20_000)),
    [3, 7, 15, 31],
  )
  const helps = (second: number) => (second < 9 ? 20_000 : 10_000)
  t.strictSame(secondsOf(helps), [3, 7, 9, 17, 33], 'the third one follows at once')
})

t.test('keeps the encoder that connected first', async (t) => {
  for (const encoders of [0, 1, 2]) {
    const judge = new OverloadJudge()
    const counts = Array.from({ length: 3 }, () => judge.observe({ ...BEHIND, encoders }))
    t.equal(counts.at(-1), Math.max(0, encoders - 1))
  }
})

t.test(
  'disconnects surging encoders after two seconds, and the newest two seconds later',
  async (t) => {
    const judge = new OverloadJudge()
    const counts = [
      judge.observe({ ...BEHIND, surges: 1 }),
      judge.observe({ ...BEHIND, surges: 1 }),
      judge.observe({ ...BEHIND, encoders: 139, drops: 10_000 }),
      judge.observe({ ...BEHIND, encoders: 139, drops: 10_000 }),
    ]
    t.strictSame(counts, [0, 1, 0, 18])
  },
)

t.test('disconnects at most an eighth of the encoders where all surge', async (t) => {
  const judge = new OverloadJudge()
  judge.observe({ ...BEHIND, surges: 140 })
  t.equal(judge.observe({ ...BEHIND, surges: 140 }), 18)
})

t.test('admits encoders again after five calm seconds', async (t) => {
  const judge = new OverloadJudge()
  for (let second = 0; second < 3; second++) judge.observe(BEHIND)
  for (let second = 0; second < 30; second++) judge.observe(BUSY)
  t.ok(judge.overloaded, 'one more encoder would bring drops again')
  for (let second = 0; second < 4; second++) judge.observe(CALM)
  t.ok(judge.overloaded)
  judge.observe({ ...CALM, drops: 1 })
  t.notOk(judge.overloaded)
})
