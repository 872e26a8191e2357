/**
 * Gathers the transport packets of one PID into PES packets (ISO/IEC 13818-1 2.4.3.6).
 *
 * @module
 */
import { PACKET_BYTES } from '../packet.ts'
import { isPesStart, PES_PREFIX_BYTES, readPesSize } from '../pes.ts'

/** A PES packet as its whole transport packets. */
export interface RawPes {
  /** Runs of neighbouring packets, each n x 188 bytes: views into what was pushed. */
  readonly chunks: readonly Buffer[]
  readonly sizeBytes: number
  readonly damaged: boolean
}

/**
 * `start` with a packet that has the unit start indicator, `append` with those that follow, `take` what is gathered:
 * before the next `start`, and when `append` or `start` says that the PES is complete.
 *
 * The unit start indicator ends a PES in any case; its length field does so earlier, but only as long as it proves
 * true: once payload follows a PES that had all its bytes, the lengths of this PID are not asked any more.
 */
export class PesAssembler {
  #open = false
  #damaged = false
  #chunks: Buffer[] = []
  #sizeBytes = 0
  #sizeBytesAtGap: number | undefined
  /** Neighbouring packets that are not a chunk yet. */
  #run: Buffer | undefined
  #runStart = 0
  #runEnd = 0
  /** Payload bytes still to come; never reached where the length is not told. */
  #missingBytes = Infinity
  #lengthsTrusted = true
  #endedByLength = false

  get open(): boolean {
    return this.#open
  }

  /** Were the open PES to end now, it would lack bytes: of its told length, or such as a gap may have swallowed. */
  get truncated(): boolean {
    const lengthTold = Number.isFinite(this.#missingBytes)
    return this.#open && (lengthTold || this.#sizeBytes === this.#sizeBytesAtGap)
  }

  /** Bytes of transport packets held. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /**
   * Opens a PES; call `take` before.
   *
   * @returns whether it is complete already; false also where the payload begins no PES, which `open` tells
   */
  start(bytes: Buffer, at: number, payloadAt: number): boolean {
    const payloadBytes = at + PACKET_BYTES - payloadAt
    this.#endedByLength = false
    // A start code cut by the packet's end cannot be checked before the whole header is read.
    if (payloadBytes >= 3 && !isPesStart(bytes, payloadAt)) return false
    const sizeBytes = payloadBytes < PES_PREFIX_BYTES ? undefined : readPesSize(bytes, payloadAt)
    this.#missingBytes = this.#lengthsTrusted ? (sizeBytes ?? Infinity) : Infinity
    this.#open = true
    return this.append(bytes, at, payloadAt)
  }

  /** @returns whether the PES is complete */
  append(bytes: Buffer, at: number, payloadAt: number): boolean {
    if (this.#run === bytes && this.#runEnd === at) {
      this.#runEnd += PACKET_BYTES
    } else {
      this.#closeRun()
      this.#run = bytes
      this.#runStart = at
      this.#runEnd = at + PACKET_BYTES
    }
    this.#sizeBytes += PACKET_BYTES
    this.#missingBytes -= at + PACKET_BYTES - payloadAt
    this.#endedByLength = this.#missingBytes <= 0
    return this.#endedByLength
  }

  /** Keeps a packet without payload in its place; it says nothing of what a gap may have swallowed. */
  appendEmpty(bytes: Buffer, at: number): void {
    const nothingSinceGap = this.#sizeBytes === this.#sizeBytesAtGap
    this.append(bytes, at, at + PACKET_BYTES)
    if (nothingSinceGap) this.#sizeBytesAtGap = this.#sizeBytes
  }

  /** Packets of this PID were lost: of the open PES, or the start of the next one. */
  handleLoss(): void {
    this.#damaged = this.#open
    this.#endedByLength = false
  }

  /** Packets were lost, of whatever PID; if of this one, the next packet tells. */
  handleGap(): void {
    this.#sizeBytesAtGap = this.#sizeBytes
  }

  /** Payload arrived while no PES is open. */
  handleOrphan(): void {
    if (this.#endedByLength) this.#lengthsTrusted = false
  }

  /** @returns the open PES, which is closed by this */
  take(): RawPes {
    this.#closeRun()
    const pes = { chunks: this.#chunks, sizeBytes: this.#sizeBytes, damaged: this.#damaged }
    this.#open = false
    this.#damaged = false
    this.#chunks = []
    this.#sizeBytes = 0
    this.#sizeBytesAtGap = undefined
    return pes
  }

  #closeRun(): void {
    if (this.#run === undefined) return
    this.#chunks.push(this.#run.subarray(this.#runStart, this.#runEnd))
    this.#run = undefined
  }
}
