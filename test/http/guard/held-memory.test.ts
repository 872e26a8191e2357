import * as fc from 'fast-check'
import t from 'tap'
import { heldBytes, slowestOver } from '../../../src/http/guard/held-memory.ts'

const body = (sizeBytes: number) => new ArrayBuffer(sizeBytes)

t.test('counts a body once for many connections', async (t) => {
  const shared = body(1000)
  const holder = { ownBytes: 10, bodies: [shared], bytesPerSec: 0 }
  t.equal(heldBytes([holder, holder, { ...holder, bodies: [body(500)] }]), 1530)
})

t.test('selects the slowest connections until the others fit', async (t) => {
  const holders = [30, 10, 20].map((bytesPerSec) => ({
    ownBytes: 0,
    bodies: [body(1000)],
    bytesPerSec,
  }))
  t.strictSame(slowestOver(holders, 3000), [])
  t.strictSame(slowestOver(holders, 2999), [holders[1]])
  t.strictSame(slowestOver(holders, 1500), [holders[1], holders[2]])
})

t.test('frees a body with its last reader', async (t) => {
  const shared = body(1000)
  const holders = [1, 2, 3].map((bytesPerSec) => ({ ownBytes: 0, bodies: [shared], bytesPerSec }))
  t.strictSame(slowestOver(holders, 1000), [])
  t.strictSame(slowestOver(holders, 999), holders)
})

t.test('spares connections that hold no memory', async (t) => {
  const idle = { ownBytes: 0, bodies: [], bytesPerSec: 0 }
  const greedy = { ownBytes: 1000, bodies: [], bytesPerSec: 5000 }
  const unknown = { ownBytes: 1000, bodies: [], bytesPerSec: Infinity }
  t.strictSame(slowestOver([idle, unknown, greedy, idle], 1000), [greedy])
})

t.test('selects no more connections than needed, in any state', async () => {
  const bodies = [1, 20, 300, 4000].map(body)
  const holder = fc.record({
    ownBytes: fc.oneof(fc.constant(0), fc.nat(1000)),
    bodies: fc.array(fc.constantFrom(...bodies), { maxLength: 2 }),
    bytesPerSec: fc.oneof(fc.nat(100), fc.constant(Infinity)),
  })
  fc.assert(
    fc.property(fc.array(holder), fc.nat(8000), (holders, maxBytes) => {
      const over = slowestOver(holders, maxBytes)
      const without = (gone: readonly object[]) =>
        heldBytes(holders.filter((each) => !gone.includes(each)))
      const kept = holders.filter((each) => !over.includes(each))
      return (
        without(over) <= maxBytes &&
        (over.length === 0 || without(over.slice(0, -1)) > maxBytes) &&
        over.every(({ ownBytes, bodies }) => ownBytes > 0 || bodies.length > 0) &&
        over.every((gone) =>
          kept.every(
            ({ ownBytes, bodies, bytesPerSec }) =>
              bytesPerSec >= gone.bytesPerSec || (ownBytes === 0 && bodies.length === 0),
          ),
        )
      )
    }),
  )
})
