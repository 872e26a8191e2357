/**
 * The receiving side of an encrypted connection (draft-sharabayko-srt 6.1.6, 6.2.2): two keys, of which each packet
 * names one, and key material that replaces them while data flows.
 *
 * Around a change of keys both are in use, since a packet that is sent again keeps the key it was sent with.
 *
 * @module
 */
import { unwrapKeys, type KeyEncryptionKey } from './key-encryption.ts'
import { Keystream } from './keystream.ts'
import { TokenBucket } from './token-bucket.ts'
import {
  countKeys,
  decodeKeyMaterial,
  KeyFlag,
  KmCipher,
  type KeyMaterial,
} from './wire/key-material.ts'
import { encryptionKeyFlag, HEADER_BYTES, isRetransmitted, sequenceNumber } from './wire/packet.ts'

/** Key material that is looked at, a second: as many tries as libsrt makes in a row. */
const REQUESTS_PER_SEC = 10

export class Decryption {
  readonly #keyEncryptionKey: KeyEncryptionKey
  #even: Keystream | undefined
  #odd: Keystream | undefined
  /** What gave the keys: a repetition of it needs no work. */
  #message: Buffer
  /** What gave those before: a copy of it that comes late must not bring them back. */
  #previousMessage: Buffer | undefined
  readonly #requests: TokenBucket

  private constructor(kek: KeyEncryptionKey, message: Buffer, nowUs: number) {
    this.#keyEncryptionKey = kek
    this.#message = message
    this.#requests = new TokenBucket(REQUESTS_PER_SEC, nowUs)
  }

  /**
   * @param kek  made of the passphrase and the material's salt
   * @returns undefined where the peer has another passphrase
   */
  static unlock(
    kek: KeyEncryptionKey,
    material: KeyMaterial,
    nowUs: number,
  ): Decryption | undefined {
    const decryption = new Decryption(kek, material.message, nowUs)
    return decryption.#adopt(material) ? decryption : undefined
  }

  #adopt({ keys, keyBytes, wrappedKeys }: KeyMaterial): boolean {
    const unwrapped = unwrapKeys(this.#keyEncryptionKey, wrappedKeys)
    if (unwrapped?.length !== countKeys(keys) * keyBytes) return false
    const { salt } = this.#keyEncryptionKey
    if (keys !== KeyFlag.ODD) this.#even = new Keystream(unwrapped.subarray(0, keyBytes), salt)
    if (keys !== KeyFlag.EVEN) this.#odd = new Keystream(unwrapped.subarray(-keyBytes), salt)
    return true
  }

  /**
   * Decrypts a data packet's payload in place.
   *
   * @returns false where it is not encrypted, or with a key that nobody has told
   */
  open(datagram: Buffer): boolean {
    const flag = encryptionKeyFlag(datagram)
    const keystream =
      flag === KeyFlag.EVEN ? this.#even : flag === KeyFlag.ODD ? this.#odd : undefined
    if (keystream === undefined) return false
    const payload = datagram.subarray(HEADER_BYTES)
    keystream.apply(payload, sequenceNumber(datagram), isRetransmitted(datagram))
    return true
  }

  /**
   * Takes the keys of a KMREQ that comes while data flows. The salt stays the connection's, so no key has to be derived.
   *
   * @returns whether to agree by repeating it; if not, nothing has changed
   */
  refresh(message: Buffer, nowUs: number): boolean {
    if (!this.#requests.take(nowUs)) return false
    if (message.equals(this.#message)) return true
    if (this.#previousMessage?.equals(message)) return false
    const material = decodeKeyMaterial(message)
    const { key, salt } = this.#keyEncryptionKey
    const fits =
      material?.cipher === KmCipher.AES_CTR &&
      material.keyBytes === key.length &&
      material.salt.equals(salt)
    if (!fits || !this.#adopt(material)) return false
    this.#previousMessage = this.#message
    this.#message = message
    return true
  }
}
