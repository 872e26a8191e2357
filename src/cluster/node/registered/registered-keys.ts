/**
 * Stream keys of a stream, as the registry has them.
 *
 * @module
 */
import { KeyFloors } from '../../../auth/key-floors.ts'
import { KeyList } from '../../../auth/key-list.ts'
import type { KeyReport } from '../../../api/records.ts'
import type { RegisteredStream } from '../../registry/registered.ts'

/** Revocations of one stream. */
export function floorsOf({ id, keyFloorSec = 0, revokedKeys = [] }: RegisteredStream): KeyFloors {
  const floors = new KeyFloors()
  floors.raise(id, keyFloorSec)
  for (const keyId of revokedKeys) floors.revokeKey(id, keyId, 0)
  return floors
}

/** Keys that hold, as `status` has them. */
export function reportKeys(registered: RegisteredStream, wallMs: number): readonly KeyReport[] {
  const floors = floorsOf(registered)
  const list = new KeyList((key) => floors.isRevoked({ streamId: registered.id, ...key }))
  for (const [keyId, usedMs] of Object.entries(registered.keys)) list.add(keyId, wallMs, usedMs)
  return list.list(wallMs)
}
