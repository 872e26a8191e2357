/**
 * Short stream keys, `<stream_id>-<22 characters>`, for encoders that cut a long StreamID or refuse `=` and `,`. Like a
 * token, the characters prove themselves: they are base64url of
 *
 *     lifetime in s << 7 | 1 for a backup encoder (4 bytes) | time of issue in s (4) | with a passphrase: its time in s (4) | HMAC-SHA256 (8)
 *
 * under a key derived from `JWT_SECRET` (HKDF, RFC 5869). With a passphrase of the stream they are 27. A key can be
 * guessed over the network alone, where 64 bits are enough.
 *
 * @module
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { isStreamId } from './stream-id.ts'

/** Numbers of characters: without a passphrase, and with one. */
const LENGTHS = [22, 27]
const MAC_BYTES = 8
/**
 * Of the bits below the lifetime, the upper six are 0. So the fifth of 27 characters is never `-`, and it is known where the stream id ends,
 * which may contain `-` as well.
 */
const LIFETIME_SHIFT = 7
const BACKUP_BIT = 1

interface ShortKeyClaims {
  /** Whether the key is for the backup encoder; default: for the main one. */
  readonly isBackup?: boolean
  readonly issuedAtSec: number
  readonly lifetimeSec: number
  /** `StreamEncryption.sinceSec`; undefined for a stream without encryption. */
  readonly encryptedSinceSec?: number | undefined
}

/** @param lifetimeSec  below 2^25 */
export function createShortKey(streamId: string, claims: ShortKeyClaims, secret: string): string {
  const { isBackup, issuedAtSec, lifetimeSec, encryptedSinceSec } = claims
  const first = (lifetimeSec << LIFETIME_SHIFT) | (isBackup === true ? BACKUP_BIT : 0)
  const words = [first, issuedAtSec, encryptedSinceSec ?? []].flat()
  const fields = Buffer.alloc(4 * words.length)
  words.forEach((word, index) => fields.writeUInt32BE(word >>> 0, 4 * index))
  const token = Buffer.concat([fields, macOf(streamId, fields, secret)]).toString('base64url')
  return `${streamId}-${token}`
}

/** @returns undefined for a text that has not the form of a short key */
export function splitShortKey(text: string): { rid: string; token: string } | undefined {
  for (const length of LENGTHS) {
    const rid = text.slice(0, -length - 1)
    if (text.at(-length - 1) !== '-' || !isStreamId(rid)) continue
    const token = text.slice(-length)
    return isShortToken(token) ? { rid, token } : undefined
  }
  return undefined
}

/** Whether a text has the form of a short key without its stream id. */
export function isShortToken(text: string): boolean {
  return LENGTHS.includes(text.length) && /^[\w-]+$/.test(text)
}

/** @returns undefined unless the secret made the key for this stream */
export function verifyShortToken(
  streamId: string,
  token: string,
  secret: string,
): ShortKeyClaims | undefined {
  const bytes = Buffer.from(token, 'base64url')
  // The last character has bits that are not in the bytes.
  if (bytes.toString('base64url') !== token) return undefined
  const fields = bytes.subarray(0, -MAC_BYTES)
  if (!timingSafeEqual(bytes.subarray(-MAC_BYTES), macOf(streamId, fields, secret))) {
    return undefined
  }
  const first = fields.readUInt32BE(0)
  return {
    isBackup: (first & BACKUP_BIT) !== 0,
    lifetimeSec: first >>> LIFETIME_SHIFT,
    issuedAtSec: fields.readUInt32BE(4),
    ...(fields.length > 8 && { encryptedSinceSec: fields.readUInt32BE(8) }),
  }
}

function macOf(streamId: string, fields: Buffer, secret: string): Buffer {
  const key = hkdfSync('sha256', secret, '', 'millrace short stream key', 32)
  const digest = createHmac('sha256', Buffer.from(key)).update(fields).update(streamId).digest()
  return digest.subarray(0, MAC_BYTES)
}
