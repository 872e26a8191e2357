/**
 * How far the timestamps of the sound are ahead of those of the pictures that arrive at the same time.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import { JUMP_TICKS, type TrackTimes } from './track-times.ts'

/** Seconds that are looked at together. */
const WINDOW_SECONDS = 10

interface Second {
  readonly leastTicks: number
  readonly mostTicks: number
  readonly meanTicks: number
}

/** `push` after each unit of sound, `closeSecond` about once a second. What is negative says that the sound is behind. */
export class SoundLead {
  /** Of the window, oldest first. */
  #seconds: Second[] = []
  /** Mean of the first window. */
  #meanAtFirst: number | undefined
  #leastTicks = Infinity
  #mostTicks = -Infinity
  #sumTicks = 0
  #count = 0

  push(sound: TrackTimes, pictures: TrackTimes): void {
    const ticks = sound.latestTicks - pictures.latestTicks
    if (Number.isNaN(ticks)) return
    if (Math.abs(ticks) >= JUMP_TICKS) {
      // Another time line begins, or they have none in common.
      this.#seconds = []
      this.#meanAtFirst = undefined
      return
    }
    this.#leastTicks = Math.min(this.#leastTicks, ticks)
    this.#mostTicks = Math.max(this.#mostTicks, ticks)
    this.#sumTicks += ticks
    this.#count++
  }

  closeSecond(): void {
    if (this.#count === 0) return
    this.#seconds.push({
      leastTicks: this.#leastTicks,
      mostTicks: this.#mostTicks,
      meanTicks: this.#sumTicks / this.#count,
    })
    this.#leastTicks = Infinity
    this.#mostTicks = -Infinity
    this.#sumTicks = 0
    this.#count = 0
    if (this.#seconds.length > WINDOW_SECONDS) this.#seconds.shift()
    if (this.#seconds.length === WINDOW_SECONDS) this.#meanAtFirst ??= this.#meanTicks
  }

  /** The least by which the sound was ahead, or behind, throughout the window; 0 where it was both. */
  get constantSec(): number {
    if (this.#seconds.length < WINDOW_SECONDS) return 0
    const least = Math.min(...this.#seconds.map(({ leastTicks }) => leastTicks))
    const most = Math.max(...this.#seconds.map(({ mostTicks }) => mostTicks))
    return (Math.max(least, 0) + Math.min(most, 0)) / TICKS_PER_SEC
  }

  /** How much further it is ahead than it was at first. */
  get driftSec(): number {
    return (this.#meanTicks - (this.#meanAtFirst ?? this.#meanTicks)) / TICKS_PER_SEC
  }

  get #meanTicks(): number {
    const sum = this.#seconds.reduce((total, { meanTicks }) => total + meanTicks, 0)
    return sum / Math.max(this.#seconds.length, 1)
  }
}
