import t from 'tap'
import { ParameterSets, type ParameterSet } from '../../src/codec/parameter-sets.ts'

const MOST_BYTES = 4096

const bytesOf = (sets: readonly ParameterSet[] = []) =>
  sets.reduce((sum, { nal }) => sum + nal.length, 0)

function pps(id: number, fill: number, sizeBytes = 100): ParameterSet {
  return { kind: 'pps', id, nal: Buffer.alloc(sizeBytes, fill) }
}
const sps: ParameterSet = { kind: 'sps', id: 0, nal: Buffer.alloc(20, 0x67) }

t.test('remembered parameter sets are limited in bytes', async (t) => {
  const sets = new ParameterSets('h264')
  const flood = Array.from({ length: 200_000 }, (_, id) => pps(id, 0x68, 5))
  sets.push([sps, ...flood])
  const heldBytes = bytesOf(sets.missingFrom([]))
  t.ok(heldBytes > MOST_BYTES - 5 && heldBytes <= MOST_BYTES, `${heldBytes} bytes`)
})

t.test('a replaced set frees its bytes, and so do invalidated ones', async (t) => {
  const sets = new ParameterSets('h264')
  sets.push([sps])
  for (let round = 0; round < 1000; round++) sets.push([pps(0, round & 0xff), pps(1, round & 0xff)])
  t.same(sets.missingFrom([]), [sps, pps(0, 999 & 0xff), pps(1, 999 & 0xff)])
  for (let round = 0; round < 1000; round++) {
    const other = { ...sps, nal: Buffer.alloc(20, round & 0xff) }
    sets.push([other, pps(0, 1), pps(1, 2)])
    if (round === 999) t.same(sets.missingFrom([]), [other, pps(0, 1), pps(1, 2)])
  }
})

t.test('another PPS under the same SPS redefines it, and none does behind a new SPS', async (t) => {
  const sets = new ParameterSets('h264')
  const other = { ...sps, nal: Buffer.alloc(20, 0x27) }
  const steps = [
    [[sps, pps(0, 1)], 'sequence'],
    [[sps, pps(0, 1)], undefined],
    [[pps(1, 1)], 'added'],
    [[pps(0, 2)], 'redefined'],
    [[pps(2, 1), pps(0, 1)], 'redefined'],
    [[pps(0, 2), pps(3, 1)], 'redefined'],
    [[other, pps(0, 3)], 'sequence'],
    [[pps(1, 2)], 'added'],
  ] as const
  for (const [pushed, change] of steps) t.equal(sets.push(pushed), change)
})
