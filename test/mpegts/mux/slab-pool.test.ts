import * as fc from 'fast-check'
import t from 'tap'
import { MIN_SLAB_BYTES, slabBytesFor, SlabPool } from '../../../src/mpegts/mux/slab-pool.ts'
import { createRandom } from '../../support/random.ts'

const KEEP_ALL = () => Infinity

t.test('a slab is used again once its last view is released', async (t) => {
  const pool = new SlabPool(KEEP_ALL)
  const slab = pool.take(MIN_SLAB_BYTES)
  const view = slab.subarray(188, 376)
  pool.hold([view])
  pool.release([slab])
  t.not(pool.take(MIN_SLAB_BYTES), slab)
  pool.release([view])
  t.equal(pool.freeBytes, MIN_SLAB_BYTES)
  t.equal(pool.take(MIN_SLAB_BYTES), slab)
  t.equal(pool.freeBytes, 0)
})

t.test('a pinned slab is never used again', async (t) => {
  const pool = new SlabPool(KEEP_ALL)
  const slab = pool.take(MIN_SLAB_BYTES)
  pool.pin([slab.subarray(0, 188)])
  pool.release([slab])
  t.equal(pool.freeBytes, 0)
})

t.test('a view that is released twice is an error', async (t) => {
  const pool = new SlabPool(KEEP_ALL)
  const slab = pool.take(MIN_SLAB_BYTES)
  pool.release([slab])
  t.throws(() => pool.release([slab]), /more often than it was taken/)
})

t.test('memory of others is ignored', async (t) => {
  const pool = new SlabPool(KEEP_ALL)
  const buffer = Buffer.alloc(MIN_SLAB_BYTES)
  pool.hold([buffer])
  pool.pin([buffer])
  pool.release([buffer, buffer])
  t.equal(pool.freeBytes, 0)
})

t.test('free memory stays within its bound, which may shrink', async (t) => {
  let maxBytes = 3 * MIN_SLAB_BYTES
  const pool = new SlabPool(() => maxBytes)
  const slabs = Array.from({ length: 10 }, () => pool.take(MIN_SLAB_BYTES))
  pool.release(slabs.slice(0, 8))
  t.equal(pool.freeBytes, 3 * MIN_SLAB_BYTES)
  maxBytes = MIN_SLAB_BYTES
  pool.release(slabs.slice(8, 9))
  t.equal(pool.freeBytes, MIN_SLAB_BYTES)
})

t.test('no slab is taken twice while a view of it is in use', async () => {
  const sizes = [1, 300_000, 900_000, 2_000_000].map(slabBytesFor)
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const random = createRandom(seed)
      const pool = new SlabPool(() => 600_000)
      /** A model: each view with its memory. */
      const views: Buffer[] = []
      for (let step = 0; step < 500; step++) {
        const at = Math.floor(random.next() * views.length)
        const action = random.next()
        if (action < 0.4) {
          const slab = pool.take(sizes[step % sizes.length]!)
          if (views.some(({ buffer }) => buffer === slab.buffer)) return false
          views.push(slab)
        } else if (views.length > 0 && action < 0.6) {
          const view = views[at]!.subarray(0, 188)
          pool.hold([view])
          views.push(view)
        } else if (views.length > 0) pool.release(views.splice(at, 1))
        if (pool.freeBytes > 600_000) return false
      }
      return true
    }),
    { numRuns: 50 },
  )
})
