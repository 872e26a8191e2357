/**
 * Key material: contents of a KMREQ, which a KMRSP repeats to accept it (draft-sharabayko-srt 3.2.2). Both are sent as
 * extension blocks in the handshake, and as control packets later.
 *
 *   |0|V=1|PT=2|   signature 0x2029    | reserved |KK |   0
 *   |           KEK index (0: the passphrase)         |   4
 *   |   cipher   |    auth    |     SE     | reserved |   8
 *   |        reserved         | salt / 4   |  key / 4 |  12
 *   |                salt (16 bytes)                  |  16
 *   |     wrapped keys: 8 bytes + length of keys      |  32
 *
 * A KMRSP that refuses the keys contains one `KmState` word, little-endian as in libsrt; the draft gives no byte order.
 *
 * @module
 */

/** KK field: the keys in the message. If both are present, the even key comes first. */
export const KeyFlag = { EVEN: 1, ODD: 2, BOTH: 3 } as const

export type KeyFlag = (typeof KeyFlag)[keyof typeof KeyFlag]

/** Key lengths of AES, in bytes. */
export type KeyBytes = 16 | 24 | 32

/** Ciphers of libsrt; only AES_CTR is supported here. */
export const KmCipher = { AES_CTR: 2, AES_GCM: 4 } as const

/** State in a KMRSP that refuses the keys (libsrt, srtcore/srt.h). */
export const KmState = {
  UNSECURED: 0,
  SECURING: 1,
  SECURED: 2,
  NO_SECRET: 3,
  BAD_SECRET: 4,
  BAD_CRYPTO_MODE: 5,
} as const

export const SALT_BYTES = 16

const VERSION_AND_TYPE = 0x12
const SIGNATURE = 0x2029
/** Stream encapsulation (SE): MPEG-TS over SRT. */
const LIVE_SRT = 2
const FIXED_BYTES = 32
/** Number of bytes that key wrapping adds (RFC 3394). */
const WRAP_BYTES = 8

export interface KeyMaterial {
  readonly keys: KeyFlag
  readonly cipher: number
  readonly keyBytes: KeyBytes
  readonly salt: Buffer
  /** One key or two, wrapped with the key encryption key. */
  readonly wrappedKeys: Buffer
  /** Complete message: a KMRSP repeats it byte for byte. */
  readonly message: Buffer
}

/**
 * @param message  contents of an extension block or of a control packet
 * @returns views into the message; undefined if a field is invalid or the length does not match
 */
export function decodeKeyMaterial(message: Buffer): KeyMaterial | undefined {
  if (message.length < FIXED_BYTES) return undefined
  const keys = message[3]! & 3
  const cipher = message[8]!
  const saltBytes = message[14]! * 4
  const keyBytes = message[15]! * 4
  const valid =
    message[0] === VERSION_AND_TYPE &&
    message.readUInt16BE(1) === SIGNATURE &&
    isKeyFlag(keys) &&
    message.readUInt32BE(4) === 0 &&
    message[9] === (cipher === KmCipher.AES_GCM ? 1 : 0) &&
    message[10] === LIVE_SRT &&
    saltBytes === SALT_BYTES &&
    isKeyBytes(keyBytes) &&
    message.length === FIXED_BYTES + WRAP_BYTES + countKeys(keys) * keyBytes
  if (!valid) return undefined
  return {
    keys,
    cipher,
    keyBytes,
    salt: message.subarray(16, 16 + SALT_BYTES),
    wrappedKeys: message.subarray(FIXED_BYTES),
    message,
  }
}

/** Encodes the contents of a KMREQ for AES-CTR. */
export function encodeKeyMaterial(
  material: Pick<KeyMaterial, 'keys' | 'keyBytes' | 'salt' | 'wrappedKeys'>,
): Buffer {
  const message = Buffer.alloc(FIXED_BYTES + material.wrappedKeys.length)
  message[0] = VERSION_AND_TYPE
  message.writeUInt16BE(SIGNATURE, 1)
  message[3] = material.keys
  message[8] = KmCipher.AES_CTR
  message[10] = LIVE_SRT
  message[14] = SALT_BYTES / 4
  message[15] = material.keyBytes / 4
  message.set(material.salt, 16)
  message.set(material.wrappedKeys, FIXED_BYTES)
  return message
}

/** @returns state in a KMRSP that refuses the keys; undefined for any other message */
export function decodeKmState(message: Buffer): number | undefined {
  return message.length === 4 ? message.readUInt32LE(0) : undefined
}

export function countKeys(keys: KeyFlag): number {
  return keys === KeyFlag.BOTH ? 2 : 1
}

export function isKeyBytes(bytes: number): bytes is KeyBytes {
  return bytes === 16 || bytes === 24 || bytes === 32
}

function isKeyFlag(keys: number): keys is KeyFlag {
  return keys !== 0
}
