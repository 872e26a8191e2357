/**
 * AES in counter mode for the packets under one key (draft-sharabayko-srt 6.2). The initialization vector of a packet
 * is a function of salt and sequence number, so packets may come in any order, or more than once.
 *
 *   |  salt 0..9  | salt 10..13 XOR sequence number | block counter |   the counter block, 16 bytes
 *
 * The draft shifts by bits here; every peer uses libsrt's byte positions (haicrypt/hcrypt.h).
 *
 * A new cipher for each packet would cost 3.3 us (bench/srt/encryption.ts). Instead, one call generates the keystream
 * of many packets in advance.
 *
 * @module
 */
import { createCipheriv, type Cipher } from 'node:crypto'
import { addToSequence, sequenceDistance } from '../../binary/sequence-number.ts'

const BLOCK_BYTES = 16

/** Number of packets whose keystream is generated in one call, 1.3 KB each; a larger batch saves little. */
const BATCH_PACKETS = 16

export class Keystream {
  readonly #cipher: Cipher
  readonly #salt: Buffer
  /** Number of blocks in the longest payload so far. */
  #blocksPerPacket = 0
  /** Counter blocks of a batch. */
  #counters: Buffer = Buffer.alloc(0)
  /** Keystream of the latest batch. */
  #batch: Buffer = Buffer.alloc(0)
  /** Sequence number of the first packet in `#batch`; undefined while `#batch` is not valid. */
  #batchFirst: number | undefined

  /**
   * @param key  16, 24 or 32 bytes
   * @param salt  16 bytes
   */
  constructor(key: Buffer, salt: Buffer) {
    // The keystream of CTR is the ECB encryption of the counter blocks.
    this.#cipher = createCipheriv(`aes-${key.length * 8}-ecb`, key, null).setAutoPadding(false)
    this.#salt = salt
  }

  /**
   * Encrypts or decrypts a payload in place.
   *
   * @param isRetransmission  whether the packet is a retransmission. A retransmission outside the batch starts no new
   *   batch, since the packets that arrive next are not its successors.
   */
  apply(payload: Buffer, sequence: number, isRetransmission: boolean): void {
    const blocks = Math.ceil(payload.length / BLOCK_BYTES)
    if (blocks > this.#blocksPerPacket) this.#reserve(blocks)
    let ahead = this.#batchFirst === undefined ? -1 : sequenceDistance(this.#batchFirst, sequence)
    if (ahead < 0 || ahead >= BATCH_PACKETS) {
      if (isRetransmission) {
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

  /** @returns keystream of `packets` packets from `first` on */
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

/** XORs the keystream into the payload, eight bytes at a time if both are aligned, as they usually are. */
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
