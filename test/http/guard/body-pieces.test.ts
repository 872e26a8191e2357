import t from 'tap'
import { PieceAllowance } from '../../../src/http/guard/body-pieces.ts'

t.test('allows 128 empty pieces, 4 more for each request, and one for 128 bytes', async (t) => {
  const allowance = new PieceAllowance()
  t.equal(countPieces(allowance, 0), 128)
  allowance.addRequest()
  t.equal(countPieces(allowance, 0), 4)
  t.notOk(allowance.take(127))
  t.ok(allowance.take(1))
  t.notOk(allowance.take(0))
})

t.test('allows any number of large pieces, and then no more small ones', async (t) => {
  const allowance = new PieceAllowance()
  for (let pieces = 0; pieces < 10_000; pieces++) t.ok(allowance.take(16_384))
  for (let requests = 0; requests < 1000; requests++) allowance.addRequest()
  t.equal(countPieces(allowance, 0), 128)
})

/** @returns number of pieces until one is refused */
function countPieces(allowance: PieceAllowance, sizeBytes: number): number {
  let pieces = 0
  while (pieces < 100_000 && allowance.take(sizeBytes)) pieces++
  return pieces
}
