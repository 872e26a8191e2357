/**
 * Round-trip time (draft-sharabayko-srt 4.10): smoothed value and variance, as in TCP.
 *
 * In the draft, smoothing starts from 100 ms and takes seconds to converge on a short path. Like libsrt
 * (srtcore/core.cpp), this estimator adopts the first sample unsmoothed.
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

  /** Time within which a response is expected: RTT + 4 x variance. */
  get responseTimeoutUs(): number {
    return this.#rttUs + 4 * this.#varianceUs
  }

  /** Adds a measured round-trip time. */
  push(rttUs: number): void {
    if (!this.#measured) {
      this.adopt(rttUs, rttUs / 2)
      return
    }
    this.#varianceUs += (Math.abs(rttUs - this.#rttUs) - this.#varianceUs) / 4
    this.#rttUs += (rttUs - this.#rttUs) / 8
  }

  /** Replaces the estimate, for example by the one that the peer reports in an ACK. */
  adopt(rttUs: number, varianceUs: number): void {
    this.#rttUs = rttUs
    this.#varianceUs = varianceUs
    this.#measured = true
  }
}
