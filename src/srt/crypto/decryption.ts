/**
 * The receiving side of an encrypted connection (draft-sharabayko-srt 6.1.6, 6.2.2): an even and an odd key, of which the
 * KK flag of each packet names one, and key material that replaces them.
 *
 * A retransmission keeps the key of its first transmission. Where keys change often and the latency is long, it may come
 * under a key that has been replaced, with the flag of the new one; its sequence number distinguishes the two.
 *
 *   even key      odd key       next even key
 *   ─────────────┬─────────────┬─────────────────►  sequence numbers
 *                     ▲ key material: packets before this point with the even flag are under the old even key
 *
 * @module
 */
import { sequenceDistance } from '../../binary/sequence-number.ts'
import { unwrapKeys, type KeyEncryptionKey } from './key-encryption.ts'
import { Keystream } from './keystream.ts'
import { TokenBucket } from '../../token-bucket.ts'
import {
  countKeys,
  decodeKeyMaterial,
  KeyFlag,
  KmCipher,
  type KeyMaterial,
} from '../wire/key-material.ts'
import { encryptionKeyFlag, HEADER_BYTES, isRetransmitted, sequenceNumber } from '../wire/packet.ts'

/** Rate limit of key material: as many KMREQs as libsrt sends for one key change. */
const MAX_REQUESTS_PER_SEC = 10

/** Age after which a replaced key is discarded, far below the range in which sequence numbers can be compared. */
const MAX_LATE_PACKETS = 2 ** 24

/** Current and previous key of one KK flag. */
class KeySlot {
  #current: Keystream | undefined
  #previous: Keystream | undefined
  /** First packet under the current key. */
  #changedAt = 0

  /** @param nextSequence  first sequence number that may be under the new key */
  put(key: Buffer, salt: Buffer, nextSequence: number): void {
    this.#previous = this.#current
    this.#current = new Keystream(key, salt)
    this.#changedAt = nextSequence
  }

  /** @returns keystream of the packet's key; undefined where the key was never announced */
  find(sequence: number): Keystream | undefined {
    if (this.#previous === undefined) return this.#current
    const ahead = sequenceDistance(this.#changedAt, sequence)
    if (ahead < 0) return this.#previous
    if (ahead > MAX_LATE_PACKETS) this.#previous = undefined
    return this.#current
  }
}

export class Decryption {
  readonly #keyEncryptionKey: KeyEncryptionKey
  readonly #even = new KeySlot()
  readonly #odd = new KeySlot()
  /** Latest wrapped keys, to recognize a repeated KMREQ. */
  #wrappedKeys: Buffer
  /** Wrapped keys before those: a late copy of their KMREQ must not restore them. */
  #previousWrappedKeys: Buffer | undefined
  readonly #requests: TokenBucket

  private constructor(kek: KeyEncryptionKey, wrappedKeys: Buffer, nowUs: number) {
    this.#keyEncryptionKey = kek
    this.#wrappedKeys = wrappedKeys
    this.#requests = new TokenBucket(MAX_REQUESTS_PER_SEC, nowUs)
  }

  /**
   * @param kek  derived from the passphrase and the salt of the material
   * @returns undefined where the peer has another passphrase
   */
  static unlock(
    kek: KeyEncryptionKey,
    material: KeyMaterial,
    nowUs: number,
  ): Decryption | undefined {
    const decryption = new Decryption(kek, material.wrappedKeys, nowUs)
    return decryption.#adopt(material, 0) ? decryption : undefined
  }

  #adopt({ keys, keyBytes, wrappedKeys }: KeyMaterial, nextSequence: number): boolean {
    const unwrapped = unwrapKeys(this.#keyEncryptionKey, wrappedKeys)
    if (unwrapped?.length !== countKeys(keys) * keyBytes) return false
    const { salt } = this.#keyEncryptionKey
    const [even, odd] = [unwrapped.subarray(0, keyBytes), unwrapped.subarray(-keyBytes)]
    if (keys !== KeyFlag.ODD) this.#even.put(even, salt, nextSequence)
    if (keys !== KeyFlag.EVEN) this.#odd.put(odd, salt, nextSequence)
    return true
  }

  /**
   * Decrypts a data packet's payload in place.
   *
   * @returns false where the packet is in clear, or under a key that was never announced
   */
  open(datagram: Buffer): boolean {
    const flag = encryptionKeyFlag(datagram)
    const slot = flag === KeyFlag.EVEN ? this.#even : flag === KeyFlag.ODD ? this.#odd : undefined
    const sequence = sequenceNumber(datagram)
    const keystream = slot?.find(sequence)
    if (keystream === undefined) return false
    keystream.apply(datagram.subarray(HEADER_BYTES), sequence, isRetransmitted(datagram))
    return true
  }

  /**
   * Adopts the keys of a KMREQ after the handshake. Its salt must be the connection's, so no key is derived.
   *
   * @param nextSequence  highest sequence number that arrived, plus one: a key is announced before its first use
   * @returns whether to respond with a KMRSP; on false nothing has changed
   */
  refresh(message: Buffer, nextSequence: number, nowUs: number): boolean {
    if (!this.#requests.take(nowUs)) return false
    const material = decodeKeyMaterial(message)
    const { key, salt } = this.#keyEncryptionKey
    const fits =
      material?.cipher === KmCipher.AES_CTR &&
      material.keyBytes === key.length &&
      material.salt.equals(salt)
    if (!fits) return false
    const { wrappedKeys } = material
    if (wrappedKeys.equals(this.#wrappedKeys)) return true
    if (this.#previousWrappedKeys?.equals(wrappedKeys) === true) return false
    if (!this.#adopt(material, nextSequence)) return false
    this.#previousWrappedKeys = this.#wrappedKeys
    this.#wrappedKeys = wrappedKeys
    return true
  }
}
