import * as fc from 'fast-check'
import t from 'tap'
import { KeyFloors } from '../../src/auth/key-floors.ts'
import { keyIdOf } from '../../src/auth/key-list.ts'

const NOW_MS = Date.UTC(2026, 10, 22, 12, 0, 0, 700)

/** Claims of a key that is issued now. */
function issue(floors: KeyFloors, streamId: string, wallMs: number) {
  const issuedAtSec = Math.floor(floors.issueTime(streamId, wallMs, 7200).getTime() / 1000)
  return { streamId, issuedAtSec, expiresAtSec: issuedAtSec + 7200 }
}

/** A revoked key and the next one, which is dated ahead of the clock; it is revoked as well. */
function issueAhead(floors: KeyFloors) {
  const leaked = issue(floors, 'studio', NOW_MS)
  floors.revokeKey('studio', keyIdOf(leaked), NOW_MS)
  const ahead = issue(floors, 'studio', NOW_MS)
  floors.revokeKey('studio', keyIdOf(ahead), NOW_MS)
  return { leaked, ahead }
}

t.test('revokes keys issued before a revocation, and none issued after it', async (t) => {
  const floors = new KeyFloors()
  const before = issue(floors, 'studio', NOW_MS)
  const other = issue(floors, 'other', NOW_MS)
  t.notOk(floors.isRevoked(before))
  floors.revoke('studio', NOW_MS)
  t.ok(floors.isRevoked(before), 'although it is of the same second')
  const after = issue(floors, 'studio', NOW_MS + 1)
  t.notOk(floors.isRevoked(after), 'although it is of the same second')
  t.notOk(floors.isRevoked(other))
  floors.revoke('studio', NOW_MS + 2)
  t.ok(floors.isRevoked(after))
  t.notOk(floors.isRevoked(issue(floors, 'studio', NOW_MS + 3)))
})

t.test('revokes exactly the earlier keys in any order of issues and revocations', async () => {
  const steps = fc.array(
    fc.record({
      id: fc.constantFrom('a', 'b'),
      act: fc.constantFrom('issue', 'revoke'),
      stepMs: fc.nat(1500),
    }),
  )
  fc.assert(
    fc.property(steps, (all) => {
      const floors = new KeyFloors()
      const good = new Map<string, ReturnType<typeof issue>[]>()
      const bad: ReturnType<typeof issue>[] = []
      let wallMs = NOW_MS
      for (const { id, act, stepMs } of all) {
        wallMs += stepMs
        const keys = good.get(id) ?? []
        if (act === 'issue') good.set(id, [...keys, issue(floors, id, wallMs)])
        else {
          floors.revoke(id, wallMs)
          bad.push(...keys)
          good.delete(id)
        }
      }
      return (
        [...good.values()].flat().every((key) => !floors.isRevoked(key)) &&
        bad.every((key) => floors.isRevoked(key))
      )
    }),
  )
})

t.test(
  'refuses old keys of all streams once more than 100,000 streams have revocations',
  async (t) => {
    const floors = new KeyFloors()
    const old = issue(floors, 's0', NOW_MS)
    const bystander = issue(floors, 'bystander', NOW_MS + 60_000)
    for (let i = 0; i < 100_001; i++) floors.revoke(`s${i}`, NOW_MS + i)
    t.ok(floors.isRevoked(old), 'a revoked key never becomes good again')
    t.notOk(floors.isRevoked(bystander), 'a later key of another stream is good')
  },
)

t.test('a revocation holds for keys that last longer than two hours', async (t) => {
  const floors = new KeyFloors()
  const long = { ...issue(floors, 'studio', NOW_MS), expiresAtSec: Infinity }
  floors.revoke('studio', NOW_MS)
  for (let hour = 0; hour < 100; hour++) floors.revoke(`s${hour}`, NOW_MS + hour * 3_600_000)
  t.ok(floors.isRevoked(long))
})

t.test('a key without time of issue is revoked by each revocation of its stream', async (t) => {
  const floors = new KeyFloors()
  const key = { streamId: 'studio', expiresAtSec: Infinity }
  floors.revoke('other', NOW_MS)
  t.notOk(floors.isRevoked(key), 'as long as its stream has none')
  floors.revoke('studio', NOW_MS)
  t.ok(floors.isRevoked(key))
})

t.test('revokes one key of a stream, and none that is issued later', async (t) => {
  const floors = new KeyFloors()
  const leaked = issue(floors, 'studio', NOW_MS)
  const kept = issue(floors, 'studio', NOW_MS + 1000)
  const others = [
    { ...leaked, streamId: 'other' },
    { ...leaked, source: 'backup' as const },
    { ...leaked, expiresAtSec: leaked.expiresAtSec + 1 },
  ]
  floors.revokeKey('studio', keyIdOf(leaked), NOW_MS)
  t.ok(floors.isRevoked(leaked))
  for (const key of [kept, ...others]) t.notOk(floors.isRevoked(key))
  const renewed = issue(floors, 'studio', NOW_MS)
  t.not(keyIdOf(renewed), keyIdOf(leaked), 'although it is of the same second')
  t.notOk(floors.isRevoked(renewed))
})

t.test('revokes all keys, also one that was issued later than the clock says', async (t) => {
  const floors = new KeyFloors()
  issueAhead(floors)
  const furtherAhead = issue(floors, 'studio', NOW_MS)
  floors.revoke('studio', NOW_MS)
  t.ok(floors.isRevoked(furtherAhead))
  t.notOk(floors.isRevoked(issue(floors, 'studio', NOW_MS)))
})

t.test('issues no key whose backup key would be revoked', async (t) => {
  const floors = new KeyFloors()
  const key = issue(floors, 'studio', NOW_MS)
  floors.revokeKey('studio', keyIdOf({ ...key, source: 'backup' }), NOW_MS)
  t.equal(issue(floors, 'studio', NOW_MS).issuedAtSec, key.issuedAtSec + 1)
})

t.test('refuses older keys, too, once more than 100,000 keys are revoked', async (t) => {
  const floors = new KeyFloors()
  const key = issue(floors, 'studio', NOW_MS)
  const expired = { streamId: 'over', issuedAtSec: 1, expiresAtSec: 2 }
  const [older, younger] = [-1, 1].map((sec) => issue(floors, 'studio', NOW_MS + sec * 1000))
  floors.revokeKey('over', keyIdOf(expired), NOW_MS)
  floors.revokeKey('studio', keyIdOf(key), NOW_MS)
  for (let i = 0; i < 100_000; i++) floors.revokeKey(`s${i}`, keyIdOf(key), NOW_MS)
  t.ok(floors.isRevoked(key), 'a revoked key never becomes good again')
  t.ok(floors.isRevoked(older!))
  t.notOk(floors.isRevoked(younger!))
  const good = { streamId: 'over', expiresAtSec: Infinity }
  t.notOk(floors.isRevoked(good), 'a key that had expired raises no floor')
})

t.test('beyond 100,000 revoked keys, one that was issued ahead stays refused', async (t) => {
  const floors = new KeyFloors()
  const { leaked, ahead } = issueAhead(floors)
  const never = { ...leaked, issuedAtSec: 9e9, expiresAtSec: 9e9 + 1 }
  floors.revokeKey('other', keyIdOf(never), NOW_MS)
  for (let i = 0; i < 100_000; i++) floors.revokeKey(`s${i}`, keyIdOf(leaked), NOW_MS)
  t.ok(floors.isRevoked(ahead))
  const good = issue(floors, 'other', NOW_MS)
  t.ok(good.issuedAtSec <= leaked.issuedAtSec + 61, 'an id of far ahead raises no floor that far')
})
