/**
 * Drop requests (DROPREQ, draft-sharabayko-srt 3.2.9) for packets that a NAK reports and the sender has dropped.
 * Without a request, a receiver that has no too-late packet drop would report these packets forever.
 *
 * @module
 */
import { sequenceDistance } from '../wire/counters.ts'
import type { RttEstimator } from '../rtt-estimator.ts'
import { MIN_NAK_INTERVAL_US } from '../timers.ts'
import type { Transmitter } from '../transmitter.ts'
import { encodeDropRequest } from '../wire/drop-request.ts'
import type { LossRange } from '../wire/loss-list.ts'
import { ControlType } from '../wire/packet.ts'

/** Max number of requests per round trip; the receiver reports the remaining ranges again. */
const MAX_REQUESTS = 32

/** Message number of a request that names no message, as in libsrt. */
const NO_MESSAGE = 0

export class DropReporter {
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  /** Requests sent within the last round trip (at least 20 ms), oldest first. */
  readonly #sent: { readonly range: LossRange; readonly sentUs: number }[] = []

  constructor(rtt: RttEstimator, transmitter: Transmitter) {
    this.#rtt = rtt
    this.#transmitter = transmitter
  }

  /** Sends a request for the range, unless `#sent` is full or has a request that overlaps it. */
  report(range: LossRange, nowUs: number): void {
    const sinceUs = nowUs - Math.max(this.#rtt.rttUs, MIN_NAK_INTERVAL_US)
    while (this.#sent.length > 0 && this.#sent[0]!.sentUs <= sinceUs) this.#sent.shift()
    if (this.#sent.length === MAX_REQUESTS) return
    if (this.#sent.some((sent) => overlaps(sent.range, range))) return
    this.#sent.push({ range, sentUs: nowUs })
    const contents = encodeDropRequest(range)
    this.#transmitter.sendControl(ControlType.DROPREQ, NO_MESSAGE, contents, nowUs)
  }
}

function overlaps(a: LossRange, b: LossRange): boolean {
  return sequenceDistance(a.first, b.last) >= 0 && sequenceDistance(b.first, a.last) >= 0
}
