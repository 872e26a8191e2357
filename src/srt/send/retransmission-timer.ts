/**
 * Retransmission timeout, for losses that no NAK reports.
 *
 * A receiver does not detect the loss of the last packet until a later one arrives. A peer without periodic NAKs
 * reports a loss once, and that NAK may be lost (the case of libsrt's FASTREXMIT).
 *
 * @module
 */
import type { RttEstimator } from '../rtt-estimator.ts'

/** Margin over the response timeout before the last packet is retransmitted: ACKs may be late, timers are coarse. */
const TAIL_MARGIN_US = 60_000

/** Margin over the response timeout before the whole flight is retransmitted. */
const FLIGHT_MARGIN_US = 30_000

export class RetransmissionTimer {
  readonly #rtt: RttEstimator
  readonly #peerRepeatsNaks: boolean
  /** Time of the latest data packet sent. */
  #sentUs = 0
  /** Time at which the flight began, shrank, or was retransmitted. */
  #progressUs = 0

  /** @param peerRepeatsNaks  whether the peer sends periodic NAKs (HSRSP flag PERIODICNAK) */
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
