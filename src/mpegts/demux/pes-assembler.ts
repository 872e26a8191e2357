/**
 * Assembles PES packets from the transport packets of one PID (ISO/IEC 13818-1 2.4.3.6).
 *
 * @module
 */
import { hasStuffing, PACKET_BYTES } from '../packet.ts'
import { isPesStart, PES_PREFIX_BYTES, readPesSize } from '../pes.ts'

/** A PES packet in its transport packets, before its header is decoded. */
export interface RawPes {
  /** Runs of adjacent transport packets: views into the pushed buffers. */
  readonly chunks: readonly Buffer[]
  readonly sizeBytes: number
  readonly damaged: boolean
  /** Whether packets were lost, or dropped, between the PES packet before and this one. */
  readonly afterLoss: boolean
  /** See `PesUnit.packetNumber`. */
  readonly packetNumber: number
}

/**
 * Calling order: `start` with a packet that has `payload_unit_start_indicator`, `append` with each packet after it,
 * `take` when `start` or `append` returns true, and before the next `start`.
 *
 * A PES packet ends at the next `payload_unit_start_indicator`, or earlier when it has the size that PES_packet_length
 * gives. Some muxers write wrong lengths: once payload follows a PES packet that was complete by its length, lengths on
 * this PID are ignored.
 */
export class PesAssembler {
  #open = false
  #damaged = false
  #afterLoss = false
  #packetNumber = 0
  #chunks: Buffer[] = []
  #sizeBytes = 0
  /** Value of `#sizeBytes` at the latest gap; undefined when there was no gap since the last `take`. */
  #sizeBytesAtGap: number | undefined
  /** Buffer of the latest adjacent packets, from `#runStart` to `#runEnd`, which `#chunks` does not contain yet. */
  #run: Buffer | undefined
  #runStart = 0
  #runEnd = 0
  /** Number of payload bytes to come by the length of the PES packet; Infinity when that is 0. */
  #missingBytes = Infinity
  #lengthsTrusted = true
  #endedByLength = false

  get open(): boolean {
    return this.#open
  }

  /** Whether the open PES packet may lack bytes: it is shorter than its length, or without one not stuffed, or ends at a gap. */
  get truncated(): boolean {
    if (!this.#open) return false
    const isShort = Number.isFinite(this.#missingBytes)
      ? this.#missingBytes > 0
      : !hasStuffing(this.#run!, this.#runEnd - PACKET_BYTES)
    return isShort || this.#sizeBytes === this.#sizeBytesAtGap
  }

  /** Size of the transport packets of the open PES packet. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /**
   * Opens a PES packet; call `take` first if one is open.
   *
   * @returns whether the PES packet is complete; when the payload has no PES start code, false, and `open` stays false
   */
  start(bytes: Buffer, at: number, payloadAt: number, packetNumber: number): boolean {
    const payloadBytes = at + PACKET_BYTES - payloadAt
    this.#endedByLength = false
    // A start code cut by the packet's end cannot be checked before the whole header is read.
    if (payloadBytes >= 3 && !isPesStart(bytes, payloadAt)) return false
    const sizeBytes = payloadBytes < PES_PREFIX_BYTES ? undefined : readPesSize(bytes, payloadAt)
    this.#missingBytes = sizeBytes ?? Infinity
    this.#packetNumber = packetNumber
    this.#open = true
    return this.append(bytes, at, payloadAt)
  }

  /** @returns whether the PES packet is complete */
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
    this.#endedByLength = this.#lengthsTrusted && this.#missingBytes <= 0
    return this.#endedByLength
  }

  /**
   * Appends a packet without payload. Its continuity counter does not prove a loss, so the end of the PES packet may
   * still lie in the latest gap.
   */
  appendEmpty(bytes: Buffer, at: number): void {
    const nothingSinceGap = this.#sizeBytes === this.#sizeBytesAtGap
    this.append(bytes, at, at + PACKET_BYTES)
    if (nothingSinceGap) this.#sizeBytesAtGap = this.#sizeBytes
  }

  /** Marks the open PES packet as damaged, or the next as behind a loss: packets of this PID were lost. */
  handleLoss(): void {
    this.#damaged = this.#open
    this.#afterLoss ||= !this.#open
    this.#endedByLength = false
  }

  /** Notes a loss of unknown packets; the next continuity counter shows whether this PID is affected. */
  handleGap(): void {
    this.#sizeBytesAtGap = this.#sizeBytes
  }

  /**
   * Handles payload outside of a PES packet. Directly after a PES packet that ended by its length, such payload proves
   * that the length was wrong.
   */
  handleOrphan(): void {
    if (this.#endedByLength) this.#lengthsTrusted = false
  }

  /** Closes and returns the open PES packet. */
  take(): RawPes {
    this.#closeRun()
    const [sizeBytes, damaged, afterLoss] = [this.#sizeBytes, this.#damaged, this.#afterLoss]
    const packetNumber = this.#packetNumber
    const pes = { chunks: this.#chunks, sizeBytes, damaged, afterLoss, packetNumber }
    this.#open = false
    this.#afterLoss = false
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
