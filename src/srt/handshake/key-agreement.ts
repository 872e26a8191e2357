/**
 * Strict key agreement with a caller (draft-sharabayko-srt 6.1.3): both sides have the same passphrase, or neither side
 * has any.
 *
 * @module
 */
import { MillraceError } from '../../errors.ts'
import { Decryption } from '../crypto/decryption.ts'
import type { KeyDeriver } from '../crypto/key-encryption.ts'
import type { Attempt } from './attempt.ts'

/**
 * @param passphrase  passphrase required of the caller; undefined: the caller must not encrypt
 * @param signal  aborts the key derivation when the attempt expires
 * @returns decryption of the caller's payloads; undefined if they are in clear
 * @throws {MillraceError} `ENCRYPTION_MISSING`, `ENCRYPTION_UNEXPECTED`, `PASSPHRASE_WRONG`
 * @throws {RangeError} if `isPassphrase` is false
 * @throws the signal's reason
 */
export async function agreeOnKeys(
  { agreement: { keyMaterial }, arrivedUs }: Attempt,
  passphrase: string | undefined,
  deriver: KeyDeriver,
  signal: AbortSignal,
): Promise<Decryption | undefined> {
  if (passphrase === undefined) {
    if (keyMaterial !== undefined) throw new MillraceError('ENCRYPTION_UNEXPECTED')
    return undefined
  }
  if (keyMaterial === undefined) throw new MillraceError('ENCRYPTION_MISSING')
  const { salt, keyBytes } = keyMaterial
  const keyEncryptionKey = await deriver.derive(passphrase, salt, keyBytes, signal)
  const decryption = Decryption.unlock(keyEncryptionKey, keyMaterial, arrivedUs)
  if (decryption === undefined) throw new MillraceError('PASSPHRASE_WRONG')
  return decryption
}
