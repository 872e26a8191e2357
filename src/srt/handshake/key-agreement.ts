/**
 * Strict key agreement with a caller (draft-sharabayko-srt 6.1.3): both sides have the same passphrase, or neither side
 * has any.
 *
 * @module
 */
import { Decryption } from '../crypto/decryption.ts'
import { Encryption, PREANNOUNCE_PACKETS, REFRESH_PACKETS } from '../crypto/encryption.ts'
import type { KeyDeriver } from '../crypto/key-encryption.ts'
import { SrtError } from '../srt-error.ts'
import { RejectCode } from '../wire/reject-code.ts'
import type { Attempt } from './attempt.ts'

interface AgreementOptions {
  /** Passphrase required of the caller; undefined: the caller must not encrypt. */
  readonly passphrase: string | undefined
  readonly deriver: KeyDeriver
  /** Whether this side sends payloads. */
  readonly sends: boolean
  readonly random: (bytes: number) => Buffer
  /** Aborts the key derivation when the attempt expires. */
  readonly signal: AbortSignal
}

/** Both are absent if the payloads are in clear. */
export interface Keys {
  readonly decryption?: Decryption
  /** Absent on a side that sends no payloads. */
  readonly encryption?: Encryption
}

/**
 * @throws {SrtError} `ENCRYPTION_MISSING`, `ENCRYPTION_UNEXPECTED`, `PASSPHRASE_WRONG`
 * @throws {RangeError} if `isPassphrase` is false
 * @throws the signal's reason
 */
export async function agreeOnKeys(
  { agreement: { keyMaterial: callerMaterial }, arrivedUs }: Attempt,
  { passphrase, deriver, sends, random, signal }: AgreementOptions,
): Promise<Keys> {
  if (passphrase === undefined) {
    if (callerMaterial === undefined) return {}
    throw new SrtError(
      'ENCRYPTION_UNEXPECTED',
      'the caller encrypts, but the listener does not: set the passphrase on both sides, or on neither',
      { rejectCode: RejectCode.UNSECURE },
    )
  }
  if (callerMaterial === undefined) {
    throw new SrtError(
      'ENCRYPTION_MISSING',
      'the caller does not encrypt, but must: set the passphrase of the listener there too',
      { rejectCode: RejectCode.UNSECURE },
    )
  }
  const { salt, keyBytes } = callerMaterial
  const keyEncryptionKey = await deriver.derive(passphrase, salt, keyBytes, signal)
  const decryption = Decryption.unlock(keyEncryptionKey, callerMaterial, arrivedUs)
  if (decryption === undefined) {
    throw new SrtError(
      'PASSPHRASE_WRONG',
      'the passphrase of the caller is wrong: set the same on both sides',
      { rejectCode: RejectCode.BADSECRET },
    )
  }
  if (!sends) return { decryption }
  const encryption = new Encryption({
    keyEncryptionKey,
    refreshPackets: REFRESH_PACKETS,
    preannouncePackets: PREANNOUNCE_PACKETS,
    random,
    callerMaterial,
  })
  return { decryption, encryption }
}
