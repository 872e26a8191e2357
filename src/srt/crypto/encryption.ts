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
import { wrapKeys, type KeyEncryptionKey } from './key-encryption.ts'
import { Keystream } from './keystream.ts'
import { encodeKeyMaterial, KeyFlag, type KeyBytes } from '../wire/key-material.ts'
import { HEADER_BYTES, markEncrypted, sequenceNumber } from '../wire/packet.ts'

/** Max number of KMREQs per key, as in libsrt. Without a KMRSP, another key is announced `refreshPackets` later. */
const MAX_REQUESTS = 10
/** Interval of KMREQs, in round trips. */
const REQUEST_RTTS = 1.5

export interface EncryptionOptions {
  readonly keyEncryptionKey: KeyEncryptionKey
  /** Number of packets encrypted with one key; more if the peer has not confirmed the next key by then. */
  readonly refreshPackets: number
  /** Number of packets before a key change at which the next key is announced; below half of `refreshPackets`. */
  readonly preannouncePackets: number
  readonly random: (bytes: number) => Buffer
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
    this.#current = this.#createKey(KeyFlag.EVEN)
    this.keyMaterial = this.#encode(KeyFlag.EVEN, this.#current.bytes)
  }

  get keyBytes(): KeyBytes {
    return this.#options.keyEncryptionKey.key.length as KeyBytes
  }

  #createKey(flag: Key['flag']): Key {
    const { keyEncryptionKey, random } = this.#options
    const bytes = random(this.keyBytes)
    return { flag, bytes, keystream: new Keystream(bytes, keyEncryptionKey.salt) }
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

  /** Encrypts a data packet's payload in place and sets its KK flag. */
  seal(datagram: Buffer): void {
    const next = this.#announcement
    if (next?.isConfirmed === true && this.#packets >= this.#options.refreshPackets) {
      this.#current = next.key
      this.#announcement = undefined
      this.#packets = 0
      this.#announceAt = this.#options.refreshPackets - this.#options.preannouncePackets
    }
    this.#packets++
    markEncrypted(datagram, this.#current.flag)
    const payload = datagram.subarray(HEADER_BYTES)
    this.#current.keystream.apply(payload, sequenceNumber(datagram), false)
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
    const key = this.#createKey(isEven ? KeyFlag.ODD : KeyFlag.EVEN)
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
