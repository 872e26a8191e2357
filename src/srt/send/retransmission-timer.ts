/**
 * Retransmission time-out, for losses that no NAK reports.
 *
 * A receiver detects the loss of the last packet only when a later one arrives. A peer without periodic NAKs reports a loss
 * once, and that NAK may be lost (libsrt's FASTREXMIT).
 *
 * @module
 */
import type { RttEstimator } from '../rtt-estimator.ts'

/** Margin over the round trip for an ACK, which the receiver delays; timers on both sides are coarse. */
const TAIL_MARGIN_US = 60_000

/** Margin over the round trip before the whole flight is retransmitted. */
const FLIGHT_MARGIN_US = 30_000

export class RetransmissionTimer {
  readonly #rtt: RttEstimator
  readonly #peerRepeatsNaks: boolean
  /** Time of the latest data packet sent. */
  #sentUs = 0
  /** Time at which the flight began, shrank, or was retransmitted. */
  #progressUs = 0

  /** @param peerRepeatsNaks  the peer sends periodic NAKs (HSRSP flag PERIODICNAK) */
  constructor(rtt: RttEstimator, peerRepeatsNaks: boolean) {
    this.#rtt = rtt
    this.#peerRepeatsNaks = peerRepeatsNaks
  }

  handleSent(nowUs: number): void {
    this.#sentUs = nowUs
  }

  /** To be called when the flight begins, and when an ACK releases packets of it. */
  handleProgress(nowUs: number): void {
    this.#progressUs = nowUs
  }

  /** @returns number of packets to retransmit now, from the end of a flight of `flightPackets` */
  takeDue(flightPackets: number, nowUs: number): number {
    if (flightPackets === 0) return 0
    const timeoutUs = this.#rtt.responseTimeoutUs
    if (this.#peerRepeatsNaks) return nowUs - this.#sentUs >= timeoutUs + TAIL_MARGIN_US ? 1 : 0
    if (nowUs - this.#progressUs < timeoutUs + FLIGHT_MARGIN_US) return 0
    this.#progressUs = nowUs
    return flightPackets
  }
}
