/**
 * The receiving side of an encrypted connection (draft-sharabayko-srt 6.1.6, 6.2.2): two keys, of which each packet
 * names one, and key material that replaces them while data flows.
 *
 * Around a change of keys both are in use, since a packet that is sent again keeps the key it was sent with. Where keys
 * change often and the latency is long, even one that was replaced is: the flag alone does not tell it from the next.
 *
 *   even          odd           even, another one
 *   ─────────────┬─────────────┬─────────────────►  sequence numbers
 *                     ▲ key material: what is even and older than this, is under the old key
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

/** Key material that is looked at, a second: as many tries as libsrt makes in a row. */
const REQUESTS_PER_SEC = 10

/** So far behind the others no packet comes; comparing sequence numbers has an end. */
const MAX_LATE_PACKETS = 2 ** 24

/** The keys that one flag has stood for. */
class KeySlot {
  #current: Keystream | undefined
  #previous: Keystream | undefined
  /** Packets before this one are under the previous key. */
  #changedAt = 0

  /** @param nextSequence  no packet from this number on has been sent under an older key */
  put(key: Buffer, salt: Buffer, nextSequence: number): void {
    this.#previous = this.#current
    this.#current = new Keystream(key, salt)
    this.#changedAt = nextSequence
  }

  /** @returns undefined where nobody has told the key */
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
  /** The keys as they came: a repetition needs no work. */
  #wrappedKeys: Buffer
  /** Those before them: a copy that comes late must not bring them back. */
  #previousWrappedKeys: Buffer | undefined
  readonly #requests: TokenBucket

  private constructor(kek: KeyEncryptionKey, wrappedKeys: Buffer, nowUs: number) {
    this.#keyEncryptionKey = kek
    this.#wrappedKeys = wrappedKeys
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
   * @returns false where it is not encrypted, or with a key that nobody has told
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
   * Takes the keys of a KMREQ that comes while data flows. The salt stays the connection's, so no key has to be derived.
   *
   * @param nextSequence  one beyond the highest that arrived: a key is told before it is used
   * @returns whether to agree by repeating it; if not, nothing has changed
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
