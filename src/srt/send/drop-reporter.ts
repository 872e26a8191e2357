/**
 * Tells the receiver what it need not wait for (DROPREQ, draft-sharabayko-srt 3.2.9): packets it asks for that were given
 * up. Receivers that drop what is too late do so without being told; others would ask for ever.
 *
 * @module
 */
import { sequenceDistance } from '../../binary/sequence-number.ts'
import type { RttEstimator } from '../rtt.ts'
import { MIN_NAK_INTERVAL_US } from '../timers.ts'
import type { Transmitter } from '../transmitter.ts'
import { encodeDropRequest } from '../wire/drop-request.ts'
import type { LossRange } from '../wire/loss-list.ts'
import { ControlType } from '../wire/packet.ts'

/** Ranges that are told within a round trip; a receiver asks for the others again. */
const MAX_RANGES = 32

/** libsrt does not say which message a lost packet belonged to, and neither do we. */
const NO_MESSAGE = 0

export class DropReporter {
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  /** Ranges that the receiver may not know of yet, oldest first. */
  readonly #told: { readonly range: LossRange; readonly toldUs: number }[] = []

  constructor(rtt: RttEstimator, transmitter: Transmitter) {
    this.#rtt = rtt
    this.#transmitter = transmitter
  }

  /** To be called where the receiver asks for packets that were given up. Each is told once per round trip. */
  report(range: LossRange, nowUs: number): void {
    const sinceUs = nowUs - Math.max(this.#rtt.rttUs, MIN_NAK_INTERVAL_US)
    while (this.#told.length > 0 && this.#told[0]!.toldUs <= sinceUs) this.#told.shift()
    if (this.#told.length === MAX_RANGES) return
    if (this.#told.some((told) => overlaps(told.range, range))) return
    this.#told.push({ range, toldUs: nowUs })
    const contents = encodeDropRequest(range)
    this.#transmitter.sendControl(ControlType.DROPREQ, NO_MESSAGE, contents, nowUs)
  }
}

function overlaps(a: LossRange, b: LossRange): boolean {
  return sequenceDistance(a.first, b.last) >= 0 && sequenceDistance(b.first, a.last) >= 0
}
