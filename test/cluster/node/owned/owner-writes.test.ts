import t, { type Test } from 'tap'
import {
  OwnerWrites,
  type OwnerWritesOptions,
} from '../../../../src/cluster/node/owned/owner-writes.ts'
import type { Registry } from '../../../../src/cluster/registry/registry.ts'

const FREE = { media: 7, discontinuity: 1 }

/** Writes to a registry that answers as it is told. */
function writesTo(t: Test, advance: Registry['advance']): OwnerWrites {
  const unused = (): never => {
    throw new Error('the registry has lost nothing')
  }
  const options: OwnerWritesOptions = {
    ...{ streamId: 'studio', ownership: { node: 'a', fence: 1 }, run: 1, lingerMs: 0 },
    registry: { advance, restore: unused, stop: unused },
    readStatus: () => 'STREAMING',
    readLeaseSince: () => undefined,
    readWhole: unused,
    clock: { wallMs: () => 0 },
    onLost: ({ outcome }) => t.fail(outcome),
    onError: (error) => t.error(error),
  }
  const writes = new OwnerWrites(options)
  t.teardown(() => writes.close())
  writes.push({ first: 6, free: FREE, entries: [] })
  return writes
}

t.test('waits for the acknowledgement of all changes, and leaves no timer', async (t) => {
  const timersOf = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timersOf()
  const writes = writesTo(t, async () => ({ outcome: 'accepted', free: FREE }))
  t.equal(await writes.flush(60_000), true)
  t.equal(timersOf(), before)
  t.equal(await writes.flush(0), true, 'of none')
})

t.test('a registry that does not answer holds a flush up for its time limit alone', async (t) => {
  const writes = writesTo(t, () => new Promise(() => undefined))
  t.equal(await writes.flush(20), false)
  t.equal(writes.pendingWrites, 1)
})
