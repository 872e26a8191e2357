import * as fc from 'fast-check'
import t from 'tap'
import {
  ConnectionSlots,
  MAX_CONNECTIONS,
  MAX_CONNECTIONS_PER_ORIGIN,
  type Slot,
  type Standing,
} from '../../src/webhook/connection-slots.ts'

function start() {
  const slots = new ConnectionSlots()
  const granted: { name: string; slot: Slot }[] = []
  const claim = (name: string, standing: Standing, origin = name) => {
    const controller = new AbortController()
    slots.acquire(origin, standing, controller.signal).then(
      (slot) => granted.push({ name, slot }),
      () => undefined,
    )
    return controller
  }
  const names = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    return granted.map(({ name }) => name)
  }
  return { claim, names, granted }
}

t.test('grants a free place to the newest claim', async (t) => {
  const { claim, names, granted } = start()
  for (let i = 0; i < 30; i++) claim(`flood-${i}`, 'new')
  claim('late', 'new')
  t.equal((await names()).length, 20)
  granted[0]!.slot.leavePlace()
  granted[0]!.slot.leavePlace()
  t.strictSame((await names()).slice(20), ['late'], 'and it is left once')
  granted[0]!.slot.release()
  t.equal((await names()).length, 21, 'its connection alone comes back after that')
})

t.test('grants places of proven URLs apart from new and failing ones', async (t) => {
  const { claim, names } = start()
  for (let i = 0; i < 30; i++) claim(`failing-${i}`, 'failing')
  for (let i = 0; i < 30; i++) claim(`new-${i}`, 'new')
  t.equal((await names()).length, 22)
  claim('proven', 'proven')
  t.equal((await names()).at(-1), 'proven')
})

t.test('limits connections in total and to one origin, also without places', async (t) => {
  const { claim, names, granted } = start()
  for (let i = 0; i < 600; i++) claim(String(i), 'proven')
  for (let left = 0; left < (await names()).length;) {
    for (; left < granted.length; left++) granted[left]!.slot.leavePlace()
  }
  t.equal(granted.length, MAX_CONNECTIONS)

  const one = start()
  for (let i = 0; i < 40; i++) one.claim(`new-${i}`, 'new', 'origin')
  t.equal((await one.names()).length, MAX_CONNECTIONS_PER_ORIGIN / 2)
  for (let i = 0; i < 40; i++) one.claim(`proven-${i}`, 'proven', 'origin')
  t.equal((await one.names()).length, MAX_CONNECTIONS_PER_ORIGIN)
  one.claim('elsewhere', 'proven')
  t.equal((await one.names()).at(-1), 'elsewhere')
  for (const { slot } of one.granted.slice(0, 16)) slot.release()
  t.equal((await one.names()).length, MAX_CONNECTIONS_PER_ORIGIN + 1 + 16)
})

t.test('grants nothing to a withdrawn claim', async (t) => {
  const { claim, names, granted } = start()
  for (let i = 0; i < 2; i++) claim(`failing-${i}`, 'failing')
  const withdrawn = claim('withdrawn', 'failing')
  claim('other', 'failing')
  withdrawn.abort()
  for (const { slot } of [...granted]) slot.release()
  await names()
  for (const { slot } of granted.slice(0, 2)) slot.release()
  t.strictSame(await names(), ['failing-0', 'failing-1', 'other'])
})

t.test('serves other origins before claims whose origin has no free connection', async (t) => {
  const { claim, names, granted } = start()
  for (let i = 0; i < 5000; i++) claim(`held-${i}`, 'new', 'origin')
  claim('elsewhere', 'new')
  t.strictSame((await names()).slice(16), ['elsewhere'])
  for (let released = 0; released < (await names()).length;) {
    for (; released < granted.length; released++) granted[released]!.slot.release()
  }
  t.equal(granted.length, 5001)
})

t.test('serves every claim in any order of claims, withdrawals and releases', async () => {
  const standing = fc.constantFrom<Standing>('proven', 'new', 'failing')
  const step = fc.record({ standing, origin: fc.constantFrom('a', 'b', 'c'), pick: fc.nat() })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 300 }), async (steps) => {
      const { claim, names, granted } = start()
      const claims: { name: string; controller: AbortController }[] = []
      const withdrawn = new Set<string>()
      let released = 0
      for (const [index, { standing, origin, pick }] of steps.entries()) {
        const name = String(index)
        claims.push({ name, controller: claim(name, standing, origin) })
        const had = await names()
        const other = claims[pick % claims.length]!
        if (pick % 3 === 0 && !had.includes(other.name)) {
          other.controller.abort()
          withdrawn.add(other.name)
        }
        if (pick % 5 === 0 && released < granted.length) granted[released++]!.slot.release()
      }
      while (released < (await names()).length) {
        while (released < granted.length) granted[released++]!.slot.release()
      }
      return granted.length + withdrawn.size === steps.length
    }),
    { numRuns: 30 },
  )
})
