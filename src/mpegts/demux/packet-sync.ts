/**
 * Packet synchronization: finds transport packets in a byte stream. SRT preserves message boundaries, but encoders need
 * not put whole packets into a message.
 *
 * The stride, from sync byte to sync byte, is detected: 188 bytes, 192 with an arrival timestamp before each packet
 * (as in .m2ts files), or 204 with a Reed-Solomon code after each (DVB). Bytes between packets are skipped.
 *
 * @module
 */
import type { DemuxerStats } from './demuxer-stats.ts'
import { PACKET_BYTES, SYNC_BYTE } from '../packet.ts'

/** Whole packets in `bytes` at `start`, `start + stride`, … below `end`. */
export interface PacketRun {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly stride: number
}

const STRIDES = [PACKET_BYTES, 192, 204] as const

/** Number of sync bytes in a row that make a lock. At a given stride, random bytes contain them once in 10^12 bytes. */
const LOCK_PACKETS = 5

const NOTHING = Buffer.alloc(0)

/** Calling order: `push` bytes as they arrive, `reset` after a loss, `end` after the last. */
export class PacketSync {
  readonly #stats: DemuxerStats
  /** Number of bytes from one sync byte to the next; 0 while searching. */
  #stride = 0
  /** Bytes not yet output: the start of a packet or, while searching, all bytes from the first possible sync byte. */
  #carry: Buffer = NOTHING
  /** Number of bytes to skip at the start of the next push: the rest of the bytes between two packets. */
  #skip = 0

  /** @param stats  counts lost syncs and skipped bytes */
  constructor(stats: DemuxerStats) {
    this.#stats = stats
  }

  /** @returns the packets completed by `bytes`: views into it, or into a copy joined with bytes of earlier pushes */
  push(bytes: Buffer): PacketRun[] {
    const whole = this.#wholeRun(bytes)
    if (whole !== undefined) return [whole]
    const runs: PacketRun[] = []
    if (this.#carry.length === 0) {
      this.#scan(bytes, this.#skip, runs)
    } else if (this.#stride === 0 || this.#carry.length + bytes.length < PACKET_BYTES) {
      this.#scan(Buffer.concat([this.#carry, bytes]), 0, runs)
    } else {
      const missing = PACKET_BYTES - this.#carry.length
      const packet = Buffer.concat([this.#carry, bytes.subarray(0, missing)])
      runs.push({ bytes: packet, start: 0, end: PACKET_BYTES, stride: this.#stride })
      this.#scan(bytes, missing + this.#stride - PACKET_BYTES, runs)
    }
    return runs
  }

  /**
   * Fast path for payloads of whole packets, as encoders send them: no search and no growing array, so 200 bytes less
   * garbage per payload.
   *
   * @returns undefined without a lock on 188 bytes, and when `bytes` does not begin and end with whole packets
   */
  #wholeRun(bytes: Buffer): PacketRun | undefined {
    const { length } = bytes
    const isWhole = this.#stride === PACKET_BYTES && length > 0 && length % PACKET_BYTES === 0
    if (!isWhole || this.#skip > 0 || this.#carry.length > 0) return undefined
    for (let at = 0; at < length; at += PACKET_BYTES) {
      if (bytes[at] !== SYNC_BYTE) return undefined
    }
    return { bytes, start: 0, end: length, stride: PACKET_BYTES }
  }

  /** Discards the start of a packet whose rest was lost, and the lock: the next push may start within a packet. */
  reset(): void {
    this.#stats.skippedBytes += this.#carry.length
    this.#carry = NOTHING
    this.#skip = 0
    this.#stride = 0
  }

  /** @returns packets of 188 bytes at the end of the stream that were too few for a lock */
  end(): PacketRun[] {
    const runs: PacketRun[] = []
    const bytes = this.#carry
    let end = 0
    while (end + PACKET_BYTES <= bytes.length && bytes[end] === SYNC_BYTE) end += PACKET_BYTES
    if (end > 0) runs.push({ bytes, start: 0, end, stride: PACKET_BYTES })
    this.#carry = bytes.subarray(end)
    this.reset()
    return runs
  }

  #scan(bytes: Buffer, from: number, runs: PacketRun[]): void {
    let at = from
    while (at < bytes.length) {
      if (this.#stride === 0) {
        const found = this.#search(bytes, at)
        this.#stats.skippedBytes += found - at
        at = found
        if (this.#stride === 0) break
      }
      const start = at
      const stride = this.#stride
      while (at + PACKET_BYTES <= bytes.length && bytes[at] === SYNC_BYTE) at += stride
      if (at > start) runs.push({ bytes, start, end: at - stride + PACKET_BYTES, stride })
      if (at >= bytes.length || bytes[at] === SYNC_BYTE) break
      this.#stats.lostSyncs++
      this.#stride = 0
    }
    this.#carry = at < bytes.length ? bytes.subarray(at) : NOTHING
    this.#skip = Math.max(0, at - bytes.length)
  }

  /**
   * Searches for a lock and sets the stride.
   *
   * @returns offset of the first packet; without a lock, first offset at which more bytes may complete one
   */
  #search(bytes: Buffer, from: number): number {
    let at = bytes.indexOf(SYNC_BYTE, from)
    while (at !== -1) {
      let undecided = false
      for (const stride of STRIDES) {
        const seen = countSyncBytes(bytes, at, stride)
        if (seen === LOCK_PACKETS) {
          this.#stride = stride
          return at
        }
        undecided ||= at + seen * stride >= bytes.length
      }
      if (undecided) return at
      at = bytes.indexOf(SYNC_BYTE, at + 1)
    }
    return bytes.length
  }
}

function countSyncBytes(bytes: Buffer, at: number, stride: number): number {
  let seen = 0
  while (seen < LOCK_PACKETS && bytes[at + seen * stride] === SYNC_BYTE) seen++
  return seen
}
