/**
 * Time of a check: the one place of the checker that reads a clock and sets timers.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { machineClock } from '../../timing/clock.ts'

export interface CheckClock {
  /** Milliseconds since 1970, on a clock that does not jump. */
  nowMs(): number
  /** Resolves after the time, or as soon as the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Calls `onEnd` once, after the time. */
  startTimer(ms: number, onEnd: () => void): CheckTimer
}

export interface CheckTimer {
  /** Counts the same time again, from now. */
  restart(): void
  stop(): void
}

/** The wall clock at the start, advanced by the monotonic clock. */
export function createCheckClock(): CheckClock {
  const startMs = machineClock.wallMs() - machineClock.nowUs() / 1000
  return {
    nowMs: () => Math.round((startMs + machineClock.nowUs() / 1000) * 1000) / 1000,
    sleep: async (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
    startTimer(ms, onEnd) {
      const timer = setTimeout(onEnd, ms)
      return { restart: () => void timer.refresh(), stop: () => clearTimeout(timer) }
    },
  }
}
