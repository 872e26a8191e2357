/**
 * Stream keys of a stream, as the registry has them.
 *
 * @module
 */
import { keyIdOf, KeyList, type KeyFacts } from '../../../auth/key-list.ts'
import type { KeyReport } from '../../../api/records.ts'
import type { RegisteredStream } from '../../registry/registered.ts'

export function isKeyRevoked(
  { keyFloorSec = 0, revokedKeys = [] }: Pick<RegisteredStream, 'keyFloorSec' | 'revokedKeys'>,
  key: KeyFacts,
): boolean {
  return (key.issuedAtSec ?? 0) < keyFloorSec || revokedKeys.includes(keyIdOf(key))
}

/** Keys that hold, as `status` has them. */
export function reportKeys(registered: RegisteredStream, wallMs: number): readonly KeyReport[] {
  const list = new KeyList((key) => isKeyRevoked(registered, key))
  for (const [keyId, usedMs] of Object.entries(registered.keys)) list.add(keyId, wallMs, usedMs)
  return list.list(wallMs)
}
