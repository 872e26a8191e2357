/**
 * Sending side of an encrypted connection (draft-sharabayko-srt 6.1.6, 6.2.1): encrypts packets with the current key,
 * and switches to the next key after `refreshPackets`, once the peer has confirmed it.
 *
 *   packets under a key    0 ─────────────────── refresh - preannounce ───────── refresh
 *                                                KMREQ, until KMRSP arrives      next key
 *
 * libsrt switches keys even if the peer has not received the next one, and then the peer cannot decrypt (srt PR#3357).
 * Here, the current key stays in use until the peer confirms the next one.
 *
 * @module
 */
import { Decryption } from './decryption.ts'
import { unwrapKeys, wrapKeys, type KeyEncryptionKey } from './key-encryption.ts'
import { Keystream } from './keystream.ts'
import {
  countKeys,
  decodeKeyMaterial,
  encodeKeyMaterial,
  KeyFlag,
  type KeyBytes,
  type KeyMaterial,
} from '../wire/key-material.ts'
import { markEncrypted, sequenceNumber } from '../wire/packet.ts'

/** Max number of KMREQs per key, as in libsrt. Without a KMRSP, another key is announced `refreshPackets` later. */
const MAX_REQUESTS = 10
/** Interval of KMREQs, in round trips. */
const REQUEST_RTTS = 1.5

/** Numbers of packets as in libsrt. */
export const REFRESH_PACKETS = 2 ** 24
export const PREANNOUNCE_PACKETS = 2 ** 12

interface EncryptionOptions {
  readonly keyEncryptionKey: KeyEncryptionKey
  /** Number of packets encrypted with one key; more if the peer has not confirmed the next key by then. */
  readonly refreshPackets: number
  /** Number of packets before a key change at which the next key is announced; below half of `refreshPackets`. */
  readonly preannouncePackets: number
  readonly random: (bytes: number) => Buffer
  /** Key material of a caller, whose key is the first one in both directions; default: a new key. */
  readonly callerMaterial?: KeyMaterial
}

interface Key {
  readonly flag: typeof KeyFlag.EVEN | typeof KeyFlag.ODD
  readonly bytes: Buffer
  readonly keystream: Keystream
}

/** Next key, from its announcement to its first use. */
interface Announcement {
  readonly key: Key
  readonly message: Buffer
  isConfirmed: boolean
  requests: number
  requestedUs: number
}

export class Encryption {
  /** Contents of the KMREQ in the handshake. */
  readonly keyMaterial: Buffer
  readonly #options: EncryptionOptions
  #current: Key
  /** Number of packets encrypted with the current key. */
  #packets = 0
  /** Value of `#packets` at which the next key is announced. */
  #announceAt: number
  #announcement: Announcement | undefined

  constructor(options: EncryptionOptions) {
    this.#options = options
    this.#announceAt = options.refreshPackets - options.preannouncePackets
    const { callerMaterial } = options
    this.#current = callerMaterial
      ? this.#adoptKey(callerMaterial)
      : this.#createKey(KeyFlag.EVEN, options.random(this.keyBytes))
    this.keyMaterial = this.#encode(KeyFlag.EVEN, this.#current.bytes)
  }

  get keyBytes(): KeyBytes {
    return this.#options.keyEncryptionKey.key.length as KeyBytes
  }

  /** Decryption of what the listener sends: under the key of the handshake, until it announces others. */
  createDecryption(nowUs: number): Decryption {
    const { keyEncryptionKey } = this.#options
    return Decryption.unlock(keyEncryptionKey, decodeKeyMaterial(this.keyMaterial)!, nowUs)!
  }

  #createKey(flag: Key['flag'], bytes: Buffer): Key {
    return { flag, bytes, keystream: new Keystream(bytes, this.#options.keyEncryptionKey.salt) }
  }

  /** As libsrt does (srtcore/crypto.cpp); in the draft, listeners send nothing. */
  #adoptKey({ keys, keyBytes, wrappedKeys }: KeyMaterial): Key {
    const unwrapped = unwrapKeys(this.#options.keyEncryptionKey, wrappedKeys)
    if (unwrapped?.length !== countKeys(keys) * keyBytes)
      throw new RangeError('the key material of the caller is under another passphrase')
    const flag = keys === KeyFlag.ODD ? KeyFlag.ODD : KeyFlag.EVEN
    return this.#createKey(flag, unwrapped.subarray(0, keyBytes))
  }

  #encode(keys: KeyFlag, bytes: Buffer): Buffer {
    const { keyEncryptionKey } = this.#options
    return encodeKeyMaterial({
      keys,
      keyBytes: this.keyBytes,
      salt: keyEncryptionKey.salt,
      wrappedKeys: wrapKeys(keyEncryptionKey, bytes),
    })
  }

  /**
   * Encrypts a data packet, and sets its KK flag in the header.
   *
   * @returns the encrypted payload, in memory of its own
   */
  seal(header: Buffer, payload: Buffer): Buffer {
    const next = this.#announcement
    if (next?.isConfirmed === true && this.#packets >= this.#options.refreshPackets) {
      this.#current = next.key
      this.#announcement = undefined
      this.#packets = 0
      this.#announceAt = this.#options.refreshPackets - this.#options.preannouncePackets
    }
    this.#packets++
    markEncrypted(header, this.#current.flag)
    const encrypted = Buffer.from(payload)
    this.#current.keystream.apply(encrypted, sequenceNumber(header), false)
    return encrypted
  }

  /** @returns contents of the KMREQ due now; undefined if none is due */
  takeRequest(nowUs: number, rttUs: number): Buffer | undefined {
    if (this.#announcement === undefined && this.#packets >= this.#announceAt) this.#announce()
    const next = this.#announcement
    if (next === undefined || next.isConfirmed) return undefined
    if (nowUs - next.requestedUs < rttUs * REQUEST_RTTS) return undefined
    if (next.requests === MAX_REQUESTS) {
      this.#announcement = undefined
      this.#announceAt = this.#packets + this.#options.refreshPackets
      return undefined
    }
    next.requests++
    next.requestedUs = nowUs
    return next.message
  }

  #announce(): void {
    const current = this.#current
    const isEven = current.flag === KeyFlag.EVEN
    const flag = isEven ? KeyFlag.ODD : KeyFlag.EVEN
    const key = this.#createKey(flag, this.#options.random(this.keyBytes))
    const both = isEven ? [current.bytes, key.bytes] : [key.bytes, current.bytes]
    this.#announcement = {
      key,
      message: this.#encode(KeyFlag.BOTH, Buffer.concat(both)),
      isConfirmed: false,
      requests: 0,
      requestedUs: -Infinity,
    }
  }

  /** @param message  contents of a KMRSP: a copy of the pending KMREQ confirms its key, any other is ignored */
  handleResponse(message: Buffer): void {
    if (this.#announcement?.message.equals(message)) this.#announcement.isConfirmed = true
  }
}
