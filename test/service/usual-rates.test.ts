import t from 'tap'
import { UsualRates } from '../../src/service/usual-rates.ts'

interface Source {
  readonly name: string
}

/** Sources at 5 Mbit/s, after so many seconds. */
function setUp(count: number, seconds: number) {
  const sources = Array.from({ length: count }, (_, index): Source => ({ name: `${index}` }))
  const usual = new Map(sources.map((source) => [source, 5e6]))
  const rates = new UsualRates<Source>()
  for (let second = 0; second < seconds; second++) rates.learn(usual)
  const find = (changes: Readonly<Record<string, number>>) =>
    rates
      .findSurges(new Map(sources.map((each) => [each, changes[each.name] ?? 5e6])))
      .map(({ source, ...rest }) => ({ name: source.name, ...rest }))
  return { rates, sources, usual, find }
}

t.test('finds the source that sends ten times its usual rate among 60', async (t) => {
  const { find } = setUp(60, 30)
  t.strictSame(find({ 7: 50e6 }), [{ name: '7', bitsPerSecond: 50e6, usual: 5e6 }])
})

t.test('lists the largest surge first', async (t) => {
  const names = setUp(60, 30)
    .find({ 7: 30e6, 8: 50e6, 9: 40e6 })
    .map(({ name }) => name)
  t.strictSame(names, ['8', '9', '7'])
})

t.test('finds no surge where every source sends its usual rate', async (t) => {
  t.strictSame(setUp(60, 30).find({}), [])
})

t.test('finds no surge below twice the usual rate, however large', async (t) => {
  t.strictSame(setUp(2, 30).find({ 1: 9.9e6 }), [])
})

t.test('finds no surge whose increase is less than a twentieth of all rates', async (t) => {
  const { find } = setUp(60, 30)
  t.strictSame(find({ 7: 20e6 }), [])
  t.strictSame(find(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [i, 50e6]))), [])
})

t.test('finds no surge of a source known for less than ten seconds', async (t) => {
  t.strictSame(setUp(60, 9).find({ 7: 50e6 }), [])
  t.strictSame(setUp(60, 10).find({ 7: 50e6 }).length, 1)
})

t.test('takes a rate that lasts for minutes as usual', async (t) => {
  const { rates, sources, usual, find } = setUp(60, 120)
  for (let second = 0; second < 300; second++) {
    rates.learn(new Map([...usual, [sources[7]!, 50e6]]))
  }
  t.strictSame(find({ 7: 50e6 }), [])
})

t.test('keeps the usual rate of a source that is absent or silent', async (t) => {
  const { rates, sources, find } = setUp(60, 30)
  for (let second = 0; second < 300; second++) rates.learn(new Map([[sources[7]!, 0]]))
  t.match(find({ 7: 50e6 }), [{ usual: 5e6 }])
})
