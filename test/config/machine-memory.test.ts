import { totalmem } from 'node:os'
import t from 'tap'
import { quarterMib, usableMemoryBytes } from '../../src/config/machine-memory.ts'

const GIB = 1024 ** 3

t.test('usable memory is the memory of the machine, or the limit of its container', async (t) => {
  t.equal(usableMemoryBytes(8 * GIB, 0), 8 * GIB, 'unknown')
  t.equal(usableMemoryBytes(8 * GIB, 2 ** 64), 8 * GIB, 'no limit')
  t.equal(usableMemoryBytes(8 * GIB, 2 * GIB), 2 * GIB)
  t.ok(usableMemoryBytes() > 0)
  t.ok(usableMemoryBytes() <= totalmem())
})

t.test('a quarter of the memory stays within the bounds of its setting', async (t) => {
  t.equal(quarterMib(2 * GIB, 16, 1_048_576), 512)
  t.equal(quarterMib(2 * GIB + 5, 16, 1_048_576), 512, 'rounded down')
  t.equal(quarterMib(GIB / 64, 16, 1_048_576), 16)
  t.equal(quarterMib(8192 * GIB, 16, 1_048_576), 1_048_576)
})
