import * as fc from 'fast-check'
import t from 'tap'
import {
  addToSequence,
  MAX_SEQUENCE_NUMBER,
  nextMessageNumber,
  sequenceDistance,
  PacketTimestamps,
} from '../../../src/srt/wire/counters.ts'

const sequences = () => fc.integer({ min: 0, max: MAX_SEQUENCE_NUMBER })

t.test('sequence numbers wrap from 2^31 - 1 to 0 (draft 3.1)', async (t) => {
  t.equal(addToSequence(MAX_SEQUENCE_NUMBER, 1), 0)
  t.equal(addToSequence(0, -1), MAX_SEQUENCE_NUMBER)
  t.equal(sequenceDistance(MAX_SEQUENCE_NUMBER, 0), 1)
  t.equal(sequenceDistance(0, MAX_SEQUENCE_NUMBER), -1)
  t.equal(sequenceDistance(7, 7), 0)
})

t.test('the distance of two sequence numbers is any step below half their range', async (t) => {
  const steps = fc.integer({ min: -(2 ** 30), max: 2 ** 30 - 1 })
  fc.assert(
    fc.property(sequences(), steps, (from, step) => {
      const to = addToSequence(from, step)
      return to >= 0 && to <= MAX_SEQUENCE_NUMBER && sequenceDistance(from, to) === step
    }),
  )
  t.pass()
})

t.test('message numbers skip 0 where they wrap (draft 3.1)', async (t) => {
  t.equal(nextMessageNumber(1), 2)
  t.equal(nextMessageNumber(2 ** 26 - 1), 1)
})

t.test('unwraps timestamps beyond 32 bits, in any order of packets', async (t) => {
  const startUs = 2 ** 32 - 5_000_000
  const steps = fc.array(fc.integer({ min: -30 * 60e6, max: 30 * 60e6 }), { maxLength: 50 })
  fc.assert(
    fc.property(steps, (stepsUs) => {
      const timestamps = new PacketTimestamps(startUs)
      let expectedUs = startUs
      return stepsUs.every((stepUs) => {
        expectedUs += stepUs
        const onTheWire = ((expectedUs % 2 ** 32) + 2 ** 32) % 2 ** 32
        return timestamps.unwrap(onTheWire) === expectedUs
      })
    }),
  )
  t.pass()
})
