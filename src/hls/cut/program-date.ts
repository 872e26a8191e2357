/**
 * EXT-X-PROGRAM-DATE-TIME (RFC 8216bis 4.4.4.6): the wall clock where a timeline begins, then the media's own durations.
 *
 * The clock of an encoder is never quite that of the server: 50 ppm are 4.3 s a day. So dates are slewed towards the
 * server's, by so little that each still is the one before plus EXTINF for every player.
 *
 * @module
 */

/** Maximum departure of a date from the duration before it, per second. */
const MAX_SLEW_MS = 1

/** Time constant of the correction: at 50 ppm dates stay 5 ms behind, and jitter of 20 ms moves them 0.2 ms per second. */
const SETTLE_SEC = 100

/** A larger difference is no drift: the wall clock jumped, or media arrived in a burst or after a pause. Dates follow the media. */
const MAX_DRIFT_MS = 1000

/** Window of random access points: the network hardly ever delays all of them, so the earliest counts. */
const ARRIVALS = 16

/** `anchor` where a timeline begins, `arrive` at each random access point, `advance` at the end of each segment. */
export class ProgramDate {
  #startMs = 0
  /** Lateness of the newest random access points against dates without slew, oldest first. */
  #lagsMs: number[] = []
  /** Sum of all slew since the anchor. */
  #slewMs = 0

  /** Date of the open segment, milliseconds since 1970. */
  get startMs(): number {
    return this.#startMs
  }

  /** The wall clock may have been set back, and media may run ahead of it: two segments never claim the same time. */
  anchor(wallMs: number): void {
    this.#startMs = Math.max(wallMs, this.#startMs)
    this.#lagsMs = [wallMs - this.#startMs]
    this.#slewMs = 0
  }

  /** @param sinceStartSec  between the start of the open segment and the random access point that arrived */
  arrive(sinceStartSec: number, wallMs: number): void {
    this.#lagsMs.push(wallMs - (this.#startMs - this.#slewMs + sinceStartSec * 1000))
    if (this.#lagsMs.length > ARRIVALS) this.#lagsMs.shift()
  }

  /** Goes on to the next segment of the timeline. */
  advance(durationSec: number): void {
    const slewMs = this.#slewRateMs() * durationSec
    this.#slewMs += slewMs
    this.#startMs += durationSec * 1000 + slewMs
  }

  /** Milliseconds a second of media. */
  #slewRateMs(): number {
    if (this.#lagsMs.length < ARRIVALS) return 0
    const differenceMs = Math.min(...this.#lagsMs) - this.#slewMs
    if (Math.abs(differenceMs) >= MAX_DRIFT_MS) return 0
    return Math.max(-MAX_SLEW_MS, Math.min(differenceMs / SETTLE_SEC, MAX_SLEW_MS))
  }
}
