/**
 * Counters of the connections that the guard refused or closed, and a log line for each counter at most once a minute.
 *
 * @module
 */
import { NO_COUNTERS, type HttpCounters } from './http-report.ts'
import { IntervalLimiter } from '../../timing/interval-limiter.ts'
import type { Logger } from '../../logger.ts'

type Counter = keyof HttpCounters

/** Log line by counter: the problem with its count since the last line, what viewers see, what to set. */
const LINES: Record<Counter, (times: number) => string> = {
  refused: (times) =>
    `HTTP connections refused: ${times}, the limit is reached. New viewers get 503. Raise HTTP_MAX_CONNECTIONS, or put a proxy in front.`,
  refusedPerAddress: (times) =>
    `HTTP connections of one address refused: ${times}, its share is a quarter. Its viewers get 503. Raise HTTP_MAX_CONNECTIONS.`,
  displaced: (times) =>
    `Idle HTTP connections closed for new ones: ${times}. Players connect again. Raise HTTP_MAX_CONNECTIONS.`,
  expired: (times) =>
    `HTTP connections without a complete request for 75 s closed: ${times}. Players are not affected. Nothing to set.`,
  slow: (times) =>
    `Slow readers disconnected: ${times}, under 4 KiB/s for a minute. Their players stall. Offer a lower bitrate.`,
  refusedStreams: (times) =>
    `HTTP/2 requests refused: ${times}, as many are open as HTTP_MAX_CONNECTIONS. Players try again. Raise it, or put a proxy in front.`,
  flooding: (times) =>
    `HTTP connections closed for floods of resets, frames or tiny pieces of bodies: ${times}. Players are not affected. Block the addresses if it goes on.`,
  overMemory: (times) =>
    `Slow readers disconnected: ${times}, replies exceed the limit of memory. Players load again. Raise HTTP_MAX_BUFFERED_MIB, or lower the bitrate.`,
}

const LINE_INTERVAL_US = 60_000_000

/** Inputs: `count` each event; `report` about once a second. */
export class GuardLog {
  readonly counters: { -readonly [Name in Counter]: number } = { ...NO_COUNTERS }
  readonly #logger: Logger
  readonly #limiter = new IntervalLimiter(LINE_INTERVAL_US)
  readonly #reported: typeof this.counters = { ...this.counters }

  constructor(logger: Logger) {
    this.#logger = logger
  }

  count(counter: Counter): void {
    this.counters[counter]++
  }

  report(nowUs: number): void {
    for (const counter of Object.keys(LINES) as Counter[]) {
      const times = this.counters[counter] - this.#reported[counter]
      if (times === 0 || !this.#limiter.take(counter, nowUs)) continue
      this.#logger.warn(LINES[counter](times))
      this.#reported[counter] = this.counters[counter]
    }
  }
}
