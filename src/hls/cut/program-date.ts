/**
 * EXT-X-PROGRAM-DATE-TIME (RFC 8216bis 4.4.4.6): the wall clock at the start of a timeline, then advanced by EXTINF.
 *
 * The clocks of encoder and server drift: 50 ppm are 4.3 s per day. So dates are slewed toward the server's clock, by
 * so little that for every player each date still equals the previous one plus EXTINF.
 *
 * @module
 */

/** Maximum slew per second of media. */
const MAX_SLEW_MS = 1

/** Time constant of the correction: at 50 ppm dates stay 5 ms behind; jitter of 20 ms moves them 0.2 ms per second. */
const SETTLE_SEC = 100

/** Smallest difference that is not drift but a jump of the wall clock, a burst or a pause: dates then have no slew. */
const MAX_DRIFT_MS = 1000

/** Number of random access points compared: the network hardly ever delays all of them, so the smallest lag counts. */
const ARRIVALS = 16

/** Inputs: `anchor` when a timeline begins, `arrive` at each random access point, `advance` after each segment. */
export class ProgramDate {
  #startMs = 0
  /** Arrivals of the newest random access points minus their dates without slew, oldest first. */
  #lagsMs: number[] = []
  /** Sum of all slew since the anchor. */
  #slewMs = 0

  /** Date of the open segment, milliseconds since 1970. */
  get startMs(): number {
    return this.#startMs
  }

  /** Starts a timeline at the wall clock, or at the end of the previous segment if later: dates never overlap. */
  anchor(wallMs: number): void {
    this.#startMs = Math.max(wallMs, this.#startMs)
    this.#lagsMs = [wallMs - this.#startMs]
    this.#slewMs = 0
  }

  /** @param sinceStartSec  media time from the start of the open segment to the random access point that arrived */
  arrive(sinceStartSec: number, wallMs: number): void {
    this.#lagsMs.push(wallMs - (this.#startMs - this.#slewMs + sinceStartSec * 1000))
    if (this.#lagsMs.length > ARRIVALS) this.#lagsMs.shift()
  }

  /** Advances to the next segment of the timeline. */
  advance(durationSec: number): void {
    const slewMs = this.#slewRateMs() * durationSec
    this.#slewMs += slewMs
    this.#startMs += durationSec * 1000 + slewMs
  }

  /** Slew in milliseconds per second of media. */
  #slewRateMs(): number {
    if (this.#lagsMs.length < ARRIVALS) return 0
    const differenceMs = Math.min(...this.#lagsMs) - this.#slewMs
    if (Math.abs(differenceMs) >= MAX_DRIFT_MS) return 0
    return Math.max(-MAX_SLEW_MS, Math.min(differenceMs / SETTLE_SEC, MAX_SLEW_MS))
  }
}
