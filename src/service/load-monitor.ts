/**
 * Load of the process: lateness of its event loop, kernel drops, and jumps of the wall clock.
 *
 * @module
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { SteadyClock } from '../timing/clock.ts'
import type { ServiceLoad } from '../api/records.ts'
import { IntervalLimiter } from '../timing/interval-limiter.ts'

export interface LoadReading extends ServiceLoad {
  /** See `SteadyClock.jumpMs`. */
  readonly clockJumpMs: number
}

interface LoadMonitorOptions {
  readonly clock: SteadyClock
  readonly readKernelDrops: () => Promise<number | undefined>
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** Interval of measurements, in milliseconds. */
const SPAN_MS = 10_000
/** Interval of the timer that the histogram measures; a longer measured interval means that the event loop is late. */
const RESOLUTION_MS = 10

/** Lateness of the event loop from which viewers stall, in milliseconds. */
export const MAX_DELAY_P99_MS = 100
const MAX_DELAY_MS = 1000
const WARNING_INTERVAL_US = 60_000_000

/** Inputs: `observe` every 10 s. Kernel drops cause no warning here, since the SRT listener warns of them. */
export class LoadJudge {
  readonly #warnings = new IntervalLimiter(WARNING_INTERVAL_US)
  #reportedJumpMs = 0

  /** @returns warnings: at most one a minute about the event loop, and one about each jump of the wall clock */
  observe(reading: LoadReading, nowUs: number): string[] {
    const { loopDelayMsP99, loopDelayMsMax, clockJumpMs } = reading
    const messages: string[] = []
    const isLate = loopDelayMsP99 >= MAX_DELAY_P99_MS || loopDelayMsMax >= MAX_DELAY_MS
    if (isLate && this.#warnings.take('loop', nowUs)) {
      messages.push(loopBehind(loopDelayMsP99, loopDelayMsMax))
    }
    if (clockJumpMs !== 0 && Math.abs(clockJumpMs - this.#reportedJumpMs) >= 1000) {
      messages.push(clockJumped(clockJumpMs))
    }
    this.#reportedJumpMs = clockJumpMs
    return messages
  }
}

/** Measures every 10 s, from its creation until `close`. */
export class LoadMonitor {
  readonly #options: LoadMonitorOptions
  readonly #judge = new LoadJudge()
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  readonly #ticker: NodeJS.Timeout
  #load: ServiceLoad = { loopDelayMsP99: 0, loopDelayMsMax: 0, kernelDrops: undefined }

  constructor(options: LoadMonitorOptions) {
    this.#options = options
    this.#histogram.enable()
    this.#ticker = setInterval(() => void this.#measure(), SPAN_MS)
    this.#ticker.unref()
    void this.#measure()
  }

  get load(): ServiceLoad {
    return this.#load
  }

  close(): void {
    clearInterval(this.#ticker)
    this.#histogram.disable()
  }

  async #measure(): Promise<void> {
    const { clock, readKernelDrops, onWarning } = this.#options
    const loopDelayMsP99 = asDelayMs(this.#histogram.percentile(99))
    const loopDelayMsMax = asDelayMs(this.#histogram.max)
    this.#histogram.reset()
    this.#load = { loopDelayMsP99, loopDelayMsMax, kernelDrops: await readKernelDrops() }
    const reading = { ...this.#load, clockJumpMs: clock.jumpMs }
    for (const message of this.#judge.observe(reading, clock.nowUs())) onWarning(message)
  }
}

function asDelayMs(intervalNs: number): number {
  return Math.max(0, Math.round(intervalNs / 1e6 - RESOLUTION_MS))
}

function loopBehind(p99Ms: number, maxMs: number): string {
  return `The event loop is late: ${p99Ms} ms (p99; limit ${MAX_DELAY_P99_MS}), ${maxMs} ms at most. Viewers stall and encoders lose packets. Run fewer streams in this process.`
}

function clockJumped(jumpMs: number): string {
  const direction = jumpMs > 0 ? 'ahead' : 'back'
  const sec = Math.round(Math.abs(jumpMs) / 1000)
  return `The wall clock jumped ${sec} s ${direction}. Playlist dates and keys keep the old time for 10 minutes. Let NTP keep the clock.`
}
