import * as fc from 'fast-check'
import t from 'tap'
import { ConnectionTable } from '../../../src/http/guard/connection-table.ts'

const LIMITS = { maxConnections: 4, maxPerSource: 2 }

t.test('limits each source to its share', async (t) => {
  const table = new ConnectionTable<string>(LIMITS)
  t.strictSame(table.admit('a1', 'a', 0), { admitted: true })
  t.strictSame(table.admit('a2', 'a', 0), { admitted: true })
  t.strictSame(table.admit('a3', 'a', 0), { admitted: false, limit: 'source' })
  t.strictSame(table.admit('b1', 'b', 0), { admitted: true })
  table.remove('a1')
  table.remove('a1')
  t.strictSame(table.admit('a3', 'a', 0), { admitted: true })
  t.strictSame(table.admit('a4', 'a', 0), { admitted: false, limit: 'source' })
})

t.test('counts a connection without a source only in the total', async (t) => {
  const table = new ConnectionTable<number>(LIMITS)
  for (let index = 0; index < 4; index++) t.ok(table.admit(index, undefined, 0).admitted)
  t.strictSame(table.admit(4, undefined, 0), { admitted: false, limit: 'all' })
})

t.test('displaces the longest idle connection after 2 s and not before', async (t) => {
  const table = new ConnectionTable<string>(LIMITS)
  for (const name of ['a', 'b', 'c', 'd']) table.admit(name, undefined, 0)
  table.markBusy('a')
  table.markBusy('b')
  table.markIdle('b', 1000)
  t.strictSame(table.admit('e', undefined, 1999), { admitted: false, limit: 'all' })
  t.strictSame(table.admit('e', undefined, 2000), { admitted: true, displaced: 'c' })
  t.strictSame(table.admit('f', undefined, 2000), { admitted: true, displaced: 'd' })
  t.strictSame(table.admit('g', undefined, 2999), { admitted: false, limit: 'all' })
  t.strictSame(table.admit('g', undefined, 3000), { admitted: true, displaced: 'b' }, 'not a: busy')
  t.equal(table.size, 4)
})

t.test("displaces only the source's own longest idle connection at its share", async (t) => {
  const table = new ConnectionTable<string>(LIMITS)
  for (const name of ['b1', 'a1', 'a2']) table.admit(name, name[0], 0)
  t.strictSame(table.admit('a3', 'a', 1999), { admitted: false, limit: 'source' })
  t.strictSame(table.admit('a3', 'a', 2000), { admitted: true, displaced: 'a1' })
  table.markBusy('a2')
  t.strictSame(table.admit('a4', 'a', 3999), { admitted: false, limit: 'source' })
  t.equal(table.size, 3)
})

t.test('lists idle connections, the longest idle first', async (t) => {
  const table = new ConnectionTable<string>(LIMITS)
  table.admit('a', undefined, 0)
  table.admit('b', undefined, 100)
  table.markBusy('a')
  table.markIdle('a', 200)
  t.strictSame([...table.idleFor(100, 250)], ['b'])
  t.strictSame([...table.idleFor(50, 250)], ['b', 'a'])
  table.markIdle('gone', 0)
  t.strictSame([...table.idleFor(0, 250)], ['b', 'a'], 'what was removed is not idle')
})

t.test('keeps the limits in any sequence of events', async () => {
  const step = fc.record({
    act: fc.constantFrom('admit', 'markBusy', 'markIdle', 'remove'),
    id: fc.nat(12),
    source: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
    elapsedMs: fc.nat(1500),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const table = new ConnectionTable<number>(LIMITS)
      const sources = new Map<number, string | undefined>()
      let nowMs = 0
      for (const { act, id, source, elapsedMs } of steps) {
        nowMs += elapsedMs
        if (act === 'admit' && !sources.has(id)) {
          const admission = table.admit(id, source, nowMs)
          if (!admission.admitted) continue
          sources.set(id, source)
          if (admission.displaced !== undefined) sources.delete(admission.displaced)
        } else if (act === 'remove') {
          table.remove(id)
          sources.delete(id)
        } else if (act === 'markBusy') table.markBusy(id)
        else if (act === 'markIdle') table.markIdle(id, nowMs)
        const ofSource = (name: string) => [...sources.values()].filter((each) => each === name)
        if (['a', 'b', 'c'].some((name) => ofSource(name).length > LIMITS.maxPerSource))
          return false
        if (table.size !== sources.size || table.size > LIMITS.maxConnections) return false
      }
      return true
    }),
  )
})
