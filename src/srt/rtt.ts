/**
 * Round-trip time (draft-sharabayko-srt 4.10): smoothed value and variance, as in TCP.
 *
 * The draft smooths from 100 ms on, which takes seconds to forget on a short path. libsrt lets the first sample stand
 * for itself (srtcore/core.cpp), and so do we.
 *
 * @module
 */

const INITIAL_RTT_US = 100_000
const INITIAL_VARIANCE_US = 50_000

export class RttEstimator {
  #rttUs = INITIAL_RTT_US
  #varianceUs = INITIAL_VARIANCE_US
  #measured = false

  get rttUs(): number {
    return this.#rttUs
  }

  get varianceUs(): number {
    return this.#varianceUs
  }

  /** By then an answer that is on its way has arrived: RTT + 4 x variance. */
  get answerUs(): number {
    return this.#rttUs + 4 * this.#varianceUs
  }

  /** Takes one measured round trip. */
  sample(rttUs: number): void {
    if (!this.#measured) {
      this.adopt(rttUs, rttUs / 2)
      return
    }
    this.#varianceUs += (Math.abs(rttUs - this.#rttUs) - this.#varianceUs) / 4
    this.#rttUs += (rttUs - this.#rttUs) / 8
  }

  /** Takes over what the peer has measured: a sender learns it from each full ACK. */
  adopt(rttUs: number, varianceUs: number): void {
    this.#rttUs = rttUs
    this.#varianceUs = varianceUs
    this.#measured = true
  }
}
