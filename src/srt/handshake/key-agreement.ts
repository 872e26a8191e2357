/**
 * Whether a caller encrypts as it is asked to (draft-sharabayko-srt 6.1.3), strictly: both sides with the same
 * passphrase, or both without.
 *
 * @module
 */
import { MillraceError } from '../../errors.ts'
import { Decryption } from '../crypto/decryption.ts'
import type { Attempt } from './handshake-responder.ts'
import type { KeyDeriver } from '../crypto/key-encryption.ts'

/**
 * @param passphrase  what is asked; undefined for no encryption
 * @param signal  gives up where the caller does not wait any longer
 * @returns what decrypts the caller's payloads; undefined where nothing is encrypted
 * @throws {MillraceError} `ENCRYPTION_MISSING`, `ENCRYPTION_UNEXPECTED`, `PASSPHRASE_WRONG`
 * @throws {RangeError} where the passphrase is none
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
