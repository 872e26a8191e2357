/**
 * Receiving side of an encrypted connection (draft-sharabayko-srt 6.1.6, 6.2.2). The KK flag of each packet names the
 * even or the odd key. A KMREQ replaces one key, or both.
 *
 * A retransmission is encrypted with the key of its first transmission. If keys change often and the latency is long,
 * another key with the same KK flag may have replaced it by then; the packet's sequence number then selects the key.
 *
 *   even key      odd key       next even key
 *   ─────────────┬─────────────┬─────────────────►  sequence numbers
 *                     ▲ key material: packets before this point with the even flag are under the old even key
 *
 * @module
 */
import { sequenceDistance } from '../wire/counters.ts'
import { unwrapKeys, type KeyEncryptionKey } from './key-encryption.ts'
import { Keystream } from './keystream.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'
import {
  countKeys,
  decodeKeyMaterial,
  KeyFlag,
  KmCipher,
  type KeyMaterial,
} from '../wire/key-material.ts'
import { encryptionKeyFlag, HEADER_BYTES, isRetransmitted, sequenceNumber } from '../wire/packet.ts'

/** Max rate of KMREQs, in packets per second: as many as libsrt sends for one key change. */
const MAX_REQUESTS_PER_SEC = 10

/** Number of packets after which a replaced key is discarded; far below 2^30, where distances become ambiguous. */
const MAX_LATE_PACKETS = 2 ** 24

/** Current and previous key for one KK flag. */
class KeySlot {
  #current: Keystream | undefined
  #previous: Keystream | undefined
  /** First sequence number that may be under the current key; meaningful only with a previous key. */
  #changedAt = 0

  /** @param nextSequence  first sequence number that may be under the new key */
  put(key: Buffer, salt: Buffer, nextSequence: number): void {
    this.#previous = this.#current
    this.#current = new Keystream(key, salt)
    this.#changedAt = nextSequence
  }

  /** @returns keystream of the packet's key; undefined if no key with this KK flag was announced */
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
  /** Wrapped keys before `#wrappedKeys`: a late copy of their KMREQ must not restore them. */
  #previousWrappedKeys: Buffer | undefined
  readonly #requests: TokenBucket

  private constructor(kek: KeyEncryptionKey, wrappedKeys: Buffer, nowUs: number) {
    this.#keyEncryptionKey = kek
    this.#wrappedKeys = wrappedKeys
    this.#requests = new TokenBucket(MAX_REQUESTS_PER_SEC, nowUs)
  }

  /**
   * @param kek  derived from the passphrase and the salt of the material
   * @returns undefined if the peer has another passphrase
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
   * @returns false if the packet is in clear, or under a key that was never announced
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
   * Adopts the keys of a KMREQ that follows the handshake. The KMREQ must repeat the salt of the connection, so the key
   * encryption key stays the same.
   *
   * @param nextSequence  highest sequence number received, plus one: no earlier packet can be under a new key
   * @returns whether to respond with a KMRSP; if false, the keys are unchanged
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
