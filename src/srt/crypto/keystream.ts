/**
 * AES in counter mode over the packets of one key (draft-sharabayko-srt 6.2). Each packet's initial vector is a pure
 * function of salt and sequence number, so packets come in any order, and more than once.
 *
 *   |  salt 0..9  | salt 10..13 XOR sequence number | block counter |   the counter block, 16 bytes
 *
 * The draft shifts by bits here; libsrt's bytes are what travels (haicrypt/hcrypt.h).
 *
 * A cipher for each packet would cost 3.3 us. Instead the blocks of many packets are encrypted in one call, ahead of
 * their payloads: bench/srt/encryption.ts.
 *
 * @module
 */
import { createCipheriv, type Cipher } from 'node:crypto'
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'

const BLOCK_BYTES = 16

/** Packets whose keystream is made at once. More would save little, and hold 1.3 KB each. */
const BATCH_PACKETS = 16

export class Keystream {
  readonly #cipher: Cipher
  readonly #salt: Buffer
  /** The longest payload so far. */
  #blocksPerPacket = 0
  /** Counter blocks of a batch, and what became of them. */
  #counters: Buffer = Buffer.alloc(0)
  #batch: Buffer = Buffer.alloc(0)
  #batchFirst: number | undefined

  /**
   * @param key  of 16, 24 or 32 bytes
   * @param salt  of 16 bytes
   */
  constructor(key: Buffer, salt: Buffer) {
    // The keystream of CTR is what ECB makes of the counter blocks.
    this.#cipher = createCipheriv(`aes-${key.length * 8}-ecb`, key, null).setAutoPadding(false)
    this.#salt = salt
  }

  /**
   * Encrypts or decrypts, in place.
   *
   * @param isLone  the packet comes out of order, as retransmissions do: none that follow it are expected
   */
  apply(payload: Buffer, sequence: number, isLone: boolean): void {
    const blocks = Math.ceil(payload.length / BLOCK_BYTES)
    if (blocks > this.#blocksPerPacket) this.#reserve(blocks)
    let ahead = this.#batchFirst === undefined ? -1 : sequenceDistance(this.#batchFirst, sequence)
    if (ahead < 0 || ahead >= BATCH_PACKETS) {
      if (isLone) {
        xorInto(payload, this.#generate(sequence, 1), 0)
        return
      }
      this.#batch = this.#generate(sequence, BATCH_PACKETS)
      this.#batchFirst = sequence
      ahead = 0
    }
    xorInto(payload, this.#batch, ahead * this.#blocksPerPacket * BLOCK_BYTES)
  }

  #reserve(blocksPerPacket: number): void {
    this.#blocksPerPacket = blocksPerPacket
    this.#batchFirst = undefined
    this.#counters = Buffer.alloc(BATCH_PACKETS * blocksPerPacket * BLOCK_BYTES)
    for (let at = 0; at < this.#counters.length; at += BLOCK_BYTES) {
      this.#salt.copy(this.#counters, at, 0, 8)
    }
  }

  /** @returns the keystream of so many packets */
  #generate(first: number, packets: number): Buffer {
    const counters = new DataView(this.#counters.buffer, this.#counters.byteOffset)
    const saltHigh = this.#salt.readInt32BE(8)
    const saltLow = this.#salt.readInt32BE(12)
    let at = 0
    for (let packet = 0; packet < packets; packet++) {
      const sequence = addToSequence(first, packet)
      const high = saltHigh ^ (sequence >>> 16)
      const low = (saltLow ^ (sequence << 16)) & ~0xffff
      for (let block = 0; block < this.#blocksPerPacket; block++) {
        counters.setInt32(at + 8, high)
        counters.setInt32(at + 12, low | block)
        at += BLOCK_BYTES
      }
    }
    return this.#cipher.update(this.#counters.subarray(0, at))
  }
}

/** Eight bytes at a time where both lie so that it can be, which is what buffers of datagrams and of ciphers do. */
function xorInto(payload: Buffer, keystream: Buffer, offset: number): void {
  const { length } = payload
  const from = keystream.byteOffset + offset
  let done = 0
  if (payload.byteOffset % 8 === 0 && from % 8 === 0) {
    const words = new BigUint64Array(payload.buffer, payload.byteOffset, length >>> 3)
    const keys = new BigUint64Array(keystream.buffer, from, length >>> 3)
    for (let i = 0; i < words.length; i++) words[i]! ^= keys[i]!
    done = words.length * 8
  }
  for (let i = done; i < length; i++) payload[i]! ^= keystream[offset + i]!
}
