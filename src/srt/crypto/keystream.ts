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
import { addToSequence, sequenceDistance } from '../wire/counters.ts'
import { MAX_PAYLOAD_BYTES } from '../wire/packet.ts'

const BLOCK_BYTES = 16
const WORD_BYTES = 8

/** Number of packets whose keystream is generated in one call, 1.3 KB each; a larger batch saves little. */
const BATCH_PACKETS = 16

/** Counter blocks of the batch being generated. Shared by all keystreams, so that they stay in the first cache. */
const counters = new DataView(
  new ArrayBuffer(BATCH_PACKETS * Math.ceil(MAX_PAYLOAD_BYTES / BLOCK_BYTES) * BLOCK_BYTES),
)

/** Keystream of consecutive packets, as bytes and as words of eight. */
interface Batch {
  readonly bytes: Buffer
  readonly words: BigUint64Array
}

export class Keystream {
  readonly #cipher: Cipher
  readonly #salt: Buffer
  /** Number of blocks in the longest payload so far. */
  #blocksPerPacket = 0
  #batch: Batch = { bytes: Buffer.alloc(0), words: new BigUint64Array(0) }
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
    if (blocks > this.#blocksPerPacket) {
      this.#blocksPerPacket = blocks
      this.#batchFirst = undefined
    }
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

  /** @returns keystream of `packets` packets from `first` on */
  #generate(first: number, packets: number): Batch {
    const saltWords = [0, 4, 8, 12].map((at) => this.#salt.readInt32BE(at))
    const [salt0, salt1, salt2, salt3] = saltWords as [number, number, number, number]
    let at = 0
    for (let packet = 0; packet < packets; packet++) {
      const sequence = addToSequence(first, packet)
      const high = salt2 ^ (sequence >>> 16)
      const low = (salt3 ^ (sequence << 16)) & ~0xffff
      for (let block = 0; block < this.#blocksPerPacket; block++) {
        counters.setInt32(at, salt0)
        counters.setInt32(at + 4, salt1)
        counters.setInt32(at + 8, high)
        counters.setInt32(at + 12, low | block)
        at += BLOCK_BYTES
      }
    }
    const bytes = this.#cipher.update(new Uint8Array(counters.buffer, 0, at))
    return { bytes, words: new BigUint64Array(bytes.buffer, bytes.byteOffset, at / WORD_BYTES) }
  }
}

/**
 * XORs the keystream from `offset` on into the payload, by words where the payload is aligned, as it usually is. Four
 * words in a turn of the loop take half the time of one (bench/srt/encryption.ts).
 */
function xorInto(payload: Buffer, { bytes, words: keys }: Batch, offset: number): void {
  let done = 0
  if (payload.byteOffset % WORD_BYTES === 0) {
    const count = (payload.length >>> 5) * 4
    const words = new BigUint64Array(payload.buffer, payload.byteOffset, count)
    const from = offset / WORD_BYTES
    for (let i = 0; i < count; i += 4) {
      words[i]! ^= keys[from + i]!
      words[i + 1]! ^= keys[from + i + 1]!
      words[i + 2]! ^= keys[from + i + 2]!
      words[i + 3]! ^= keys[from + i + 3]!
    }
    done = count * WORD_BYTES
  }
  for (let i = done; i < payload.length; i++) payload[i]! ^= bytes[offset + i]!
}
