/**
 * The ring of the receiver against a model without ring, wrap and blocks.
 */
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { addToSequence } from '../../../src/srt/wire/counters.ts'
import { ReceiveBuffer } from '../../../src/srt/receive/receive-buffer.ts'

const WINDOW = 5000
const FIRST = 0x7fffffff - 2000

/** Places count from 0 and never wrap. */
const numberOf = (place: number) => addToSequence(FIRST, place)

t.test('finds held and missing packets at any distance', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ hold: fc.integer({ min: 1, max: 20 }) }) },
    { weight: 4, arbitrary: fc.record({ hold: fc.integer({ min: 1, max: WINDOW - 1 }) }) },
    { weight: 4, arbitrary: fc.constant('pass' as const) },
    { weight: 1, arbitrary: fc.constant('skip' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const buffer = new ReceiveBuffer(FIRST)
      const held = new Set<number>()
      let next = 0
      for (const one of steps) {
        if (typeof one === 'object') {
          const place = next + one.hold
          if (held.has(place)) continue
          buffer.hold(numberOf(place), Buffer.from(String(place)), place)
          held.add(place)
        } else if (one === 'pass') {
          buffer.advance()
          next++
        } else if (held.size > 0) {
          buffer.skipTo(buffer.firstHeld)
          next = Math.min(...held)
        }
        for (let payload; (payload = buffer.takeNext()) !== undefined; next++) {
          assert.equal(payload.toString(), String(next))
          assert.ok(held.delete(next))
        }
        assert.ok(!held.has(next))
        const places = [...held].toSorted((a, b) => a - b)
        assert.equal(buffer.next, numberOf(next))
        assert.equal(buffer.heldPackets, places.length)
        assert.equal(buffer.end, numberOf((places.at(-1) ?? next - 1) + 1))
        if (places.length > 0) {
          assert.equal(buffer.firstHeld, numberOf(places[0]!))
          assert.equal(buffer.firstHeldDueUs, places[0])
        }
        for (const to of [(places.at(-1) ?? next - 1) + 1, next + ((steps.length * 41) % WINDOW)]) {
          if (places.length === 0 || to > places.at(-1)! + 1) continue
          const gaps = [...places, Infinity]
            .map((place, i) => [(places[i - 1] ?? next - 1) + 1, Math.min(place, to) - 1] as const)
            .filter(([first, last]) => first <= last)
            .map(([first, last]) => ({ first: numberOf(first), last: numberOf(last) }))
          assert.deepEqual(buffer.missing(buffer.next, numberOf(to), Infinity), gaps)
        }
      }
    }),
    { numRuns: 500 },
  )
})
