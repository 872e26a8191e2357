/**
 * A/V offset: DTS of the newest audio frame minus DTS of the newest video frame, as they arrive. Negative if audio is
 * behind.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import { JUMP_TICKS, type TrackTimes } from './track-times.ts'

/** Length of the sliding window; seconds without audio do not count. */
const WINDOW_SECONDS = 10

interface Second {
  readonly minTicks: number
  readonly maxTicks: number
  readonly meanTicks: number
}

/** Inputs: `push` after each audio frame, `closeSecond` about once a second. */
export class AvOffset {
  /** Seconds of the window, oldest first. */
  #seconds: Second[] = []
  /** Mean offset in the first full window since the latest discontinuity. */
  #firstMeanTicks: number | undefined
  #minTicks = Infinity
  #maxTicks = -Infinity
  #sumTicks = 0
  #count = 0

  push(audio: TrackTimes, video: TrackTimes): void {
    const ticks = audio.latestTicks - video.latestTicks
    if (Number.isNaN(ticks)) return
    if (Math.abs(ticks) >= JUMP_TICKS) {
      // Timestamp discontinuity, or tracks on different clocks.
      this.#seconds = []
      this.#firstMeanTicks = undefined
      return
    }
    this.#minTicks = Math.min(this.#minTicks, ticks)
    this.#maxTicks = Math.max(this.#maxTicks, ticks)
    this.#sumTicks += ticks
    this.#count++
  }

  closeSecond(): void {
    if (this.#count === 0) return
    this.#seconds.push({
      minTicks: this.#minTicks,
      maxTicks: this.#maxTicks,
      meanTicks: this.#sumTicks / this.#count,
    })
    this.#minTicks = Infinity
    this.#maxTicks = -Infinity
    this.#sumTicks = 0
    this.#count = 0
    if (this.#seconds.length > WINDOW_SECONDS) this.#seconds.shift()
    if (this.#seconds.length === WINDOW_SECONDS) this.#firstMeanTicks ??= this.#meanTicks
  }

  /** Offset nearest to zero in the window; 0 if the sign changed, or if the window is not full. */
  get steadySec(): number {
    if (this.#seconds.length < WINDOW_SECONDS) return 0
    const minTicks = Math.min(...this.#seconds.map((second) => second.minTicks))
    const maxTicks = Math.max(...this.#seconds.map((second) => second.maxTicks))
    return (Math.max(minTicks, 0) + Math.min(maxTicks, 0)) / TICKS_PER_SEC
  }

  /** Change of the mean offset since the first full window; 0 before it. */
  get driftSec(): number {
    return (this.#meanTicks - (this.#firstMeanTicks ?? this.#meanTicks)) / TICKS_PER_SEC
  }

  get #meanTicks(): number {
    const sum = this.#seconds.reduce((total, { meanTicks }) => total + meanTicks, 0)
    return sum / Math.max(this.#seconds.length, 1)
  }
}
