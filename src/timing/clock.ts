/**
 * Clocks and timers. State machines take the time as an argument; their drivers read it from a `Clock`, and wait with `Timers`.
 *
 * @module
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

/** A monotonic clock and a wall clock. */
export interface Clock {
  /** Microseconds since an arbitrary origin; never goes back. */
  nowUs(): number
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  wallMs(): number
}

/** Waits, all in milliseconds. */
export interface Timers {
  /** Resolves after a time, with what has arrived by then read first; rejects once the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<unknown>
  /** Calls `task` after each interval. @returns ends the calls */
  every(intervalMs: number, task: () => void): () => void
}

/** Smallest step of the wall clock that counts as a jump. */
const MIN_JUMP_MS = 1000

/** Time without another jump after which the source is adopted. A wrong setting is usually corrected sooner. */
const HOLD_US = 10 * 60 * 1_000_000

/**
 * A wall clock that delays jumps. It advances with `nowUs`, and adopts the source's wall clock after every 10 minutes
 * without a jump, so it follows slow drift. A jump of the source (NTP, an operator, a suspended machine) starts the 10
 * minutes anew; a jump that is reverted within them has no effect. Dates of media and of stream keys come from this
 * clock.
 *
 * `wallMs` or `jumpMs` must be read at least once a minute, since only a reading detects a jump.
 */
export class SteadyClock implements Clock {
  readonly #source: Clock
  /** Offset of this wall clock from `nowUs`, in milliseconds. */
  #offsetMs: number
  /** Offset of the source's wall clock since `#candidateSinceUs`, in milliseconds. */
  #candidateMs: number
  #candidateSinceUs: number

  /** @param source  clock whose wall clock may jump */
  constructor(source: Clock) {
    this.#source = source
    this.#candidateSinceUs = source.nowUs()
    this.#offsetMs = source.wallMs() - this.#candidateSinceUs / 1000
    this.#candidateMs = this.#offsetMs
  }

  nowUs(): number {
    return this.#source.nowUs()
  }

  /** Whole milliseconds since 1970-01-01T00:00:00Z. */
  wallMs(): number {
    const nowUs = this.#follow()
    return Math.round(nowUs / 1000 + this.#offsetMs)
  }

  /** Jump of the source that is not adopted yet, in milliseconds, negative for a jump back; 0 without one. */
  get jumpMs(): number {
    this.#follow()
    const jumpMs = this.#candidateMs - this.#offsetMs
    return Math.abs(jumpMs) < MIN_JUMP_MS ? 0 : jumpMs
  }

  #follow(): number {
    const nowUs = this.#source.nowUs()
    const offsetMs = this.#source.wallMs() - nowUs / 1000
    const jumped = Math.abs(offsetMs - this.#candidateMs) >= MIN_JUMP_MS
    const held = nowUs - this.#candidateSinceUs >= HOLD_US
    if (jumped || held) {
      if (!jumped) this.#offsetMs = offsetMs
      this.#candidateMs = offsetMs
      this.#candidateSinceUs = nowUs
    }
    return nowUs
  }
}

/** Clocks of this machine, for times that other machines compare with their own clocks: requests and webhooks. */
export const machineClock: Clock = {
  nowUs: () => performance.now() * 1000,
  wallMs: () => Date.now(),
}

export const machineTimers: Timers = {
  async sleep(ms, signal) {
    await sleep(ms, undefined, { ...(signal && { signal }) })
    // A turn of the event loop calls its timers, reads sockets, then calls immediates.
    await nextTurn()
  },
  every(intervalMs, task) {
    const timer = setInterval(task, intervalMs)
    return () => clearInterval(timer)
  },
}

/** Clocks of this machine, with a steadied wall clock. */
export const systemClock = new SteadyClock(machineClock)
