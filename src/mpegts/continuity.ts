/**
 * Continuity counters (ISO/IEC 13818-1 2.4.3.3): the check of those received, which finds lost and repeated packets, and
 * the numbering of those sent.
 *
 * @module
 */
import {
  announcesDiscontinuity,
  hasPayload,
  hasPcr,
  PACKET_BYTES,
  PID_COUNT,
  readContinuityCounter,
  readPid,
} from './packet.ts'

/** Result for a packet: no loss before it, first packet after a loss, or repetition of the packet before. */
type Verdict = 'continuous' | 'lost' | 'duplicate'

/**
 * Number of packets without payload that must have kept the counter, one after the other, until one that increments it
 * counts as proof of a loss. Multiplexers increment it in each packet of a kind, or in many: not in one of so many.
 */
const MIN_KEPT = 16

/**
 * Received counter of one PID: `check` every packet with payload, `checkEmpty` every other one, `handleGap` when packets of
 * any PID may be missing.
 *
 * A packet without payload must not increment the counter (2.4.3.3). Some multiplexers increment it all the same, in
 * packets for a PCR, for stuffing or for both, and continue from there or as if they had not. A single packet that is
 * lost before a packet without payload looks alike: what the PID has done before tells them apart.
 */
export class Continuity {
  /** Counter of the previous packet with payload; -1 before the first. */
  #counter = -1
  /** Counter from which the next packet may continue instead; that of the previous packet without payload, if it fits. */
  #emptyCounter = -1
  /** Numbers of packets that kept the counter since one incremented it: without PCR, and with. */
  readonly #kept: [number, number] = [0, 0]
  #afterGap = false
  /** Buffer with the payload of the previous packet, from `#payloadAt` to `#end`. */
  #bytes: Buffer | undefined
  #payloadAt = 0
  #end = 0

  /**
   * @param at  offset of the packet in `bytes`, which is retained until the next packet
   * @param payloadAt  offset of the payload in `bytes`
   */
  check(bytes: Buffer, at: number, payloadAt: number): Verdict {
    const counter = readContinuityCounter(bytes, at)
    const previous = this.#counter
    let verdict: Verdict = 'continuous'
    if (!follows(counter, previous) && !follows(counter, this.#emptyCounter) && previous !== -1) {
      if (counter === previous && this.#repeats(bytes, at, payloadAt)) return 'duplicate'
      if (!announcesDiscontinuity(bytes, at)) verdict = 'lost'
    }
    this.#counter = counter
    this.#emptyCounter = counter
    this.#afterGap = false
    this.#bytes = bytes
    this.#payloadAt = payloadAt
    this.#end = at + PACKET_BYTES
    return verdict
  }

  /** Takes over the counter of a packet without payload. One that does not fit is ignored: the next payload shows a loss. */
  checkEmpty(bytes: Buffer, at: number): void {
    const counter = readContinuityCounter(bytes, at)
    const kind = hasPcr(bytes, at) ? 1 : 0
    if (announcesDiscontinuity(bytes, at)) this.#emptyCounter = counter
    else if (counter === this.#emptyCounter) this.#kept[kind]++
    else if (follows(counter, this.#emptyCounter)) {
      const provesLoss = this.#afterGap || this.#kept[kind] >= MIN_KEPT
      if (!provesLoss || hasPayload(bytes, at)) this.#emptyCounter = counter
      this.#kept[kind] = 0
    }
  }

  /** Notes that packets may be missing before the next one. */
  handleGap(): void {
    this.#afterGap = true
  }

  /** Whether the payload equals the previous one. Adaptation fields are ignored: the PCR may differ (2.4.3.3). */
  #repeats(bytes: Buffer, at: number, payloadAt: number): boolean {
    return (
      this.#bytes !== undefined &&
      this.#bytes.compare(bytes, payloadAt, at + PACKET_BYTES, this.#payloadAt, this.#end) === 0
    )
  }
}

/** Whether a counter is the next one after `previous`. */
function follows(counter: number, previous: number): boolean {
  return counter === ((previous + 1) & 0x0f)
}

/**
 * Counters of the outgoing stream. All PIDs are numbered anew, so inserted PSI, dropped packets and losses leave no gap,
 * and counters continue from segment to segment (RFC 8216bis 3).
 */
export class ContinuityCounters {
  /** Last counter of each PID: 8 KiB, allocated with the first packets. */
  #last: Uint8Array | undefined

  /**
   * Renumbers packets in place: the counter increments with each packet that has payload, and
   * stays the same in a packet without payload.
   *
   * @param from  offset of the first packet
   * @param to  end of the last packet
   */
  renumber(bytes: Buffer, from: number, to: number): void {
    const last = (this.#last ??= new Uint8Array(PID_COUNT).fill(0x0f))
    for (let offset = from; offset < to; offset += PACKET_BYTES) {
      const pid = readPid(bytes, offset)
      const counter = hasPayload(bytes, offset) ? (last[pid]! + 1) & 0x0f : last[pid]!
      last[pid] = counter
      bytes[offset + 3] = (bytes[offset + 3]! & 0xf0) | counter
    }
  }
}
