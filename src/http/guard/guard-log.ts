/**
 * Counts of what the guard refused or cut, told to the operator once a minute at most.
 *
 * @module
 */
import type { Logger } from '../../logger.ts'

export interface GuardCounts {
  /** Connections refused because there were `HTTP_MAX_CONNECTIONS`. */
  readonly refusedAll: number
  /** Connections refused because their address had its share. */
  readonly refusedSource: number
  /** Idle connections closed in favor of new ones. */
  readonly displaced: number
  /** Connections that sent bytes but no request for too long. */
  readonly expired: number
  /** Readers that took too few bytes a second. */
  readonly slow: number
  /** Readers cut because sockets held `HTTP_MAX_BUFFERED_MIB`. */
  readonly overMemory: number
}

/** Lines for the operator: the problem with its count since the last line, what viewers see, what to set. */
const LINES: Record<keyof GuardCounts, (times: number) => string> = {
  refusedAll: (times) =>
    `HTTP connections refused: ${times}, the limit is reached. New viewers get 503. Raise HTTP_MAX_CONNECTIONS, or put a proxy in front.`,
  refusedSource: (times) =>
    `HTTP connections of one address refused: ${times}, its share is a quarter. Its viewers get 503. Raise HTTP_MAX_CONNECTIONS.`,
  displaced: (times) =>
    `Idle HTTP connections closed for new ones: ${times}. Players connect again. Raise HTTP_MAX_CONNECTIONS.`,
  expired: (times) =>
    `HTTP connections closed that sent bytes, but no request for 75 s: ${times}. No player does that. Nothing to set.`,
  slow: (times) =>
    `Slow readers cut: ${times}, under 4 KiB/s for a minute. Their players stall. Offer a lower bitrate.`,
  overMemory: (times) =>
    `Slow readers cut: ${times}, replies exceed the limit of memory. Players load again. Raise HTTP_MAX_BUFFERED_MIB, or lower the bitrate.`,
}

const EVERY_MS = 60_000

/** `count` what happens; `report` every second or so. Times are milliseconds of one clock that never goes back. */
export class GuardLog {
  readonly counts: { -readonly [Kind in keyof GuardCounts]: number } = {
    refusedAll: 0,
    refusedSource: 0,
    displaced: 0,
    expired: 0,
    slow: 0,
    overMemory: 0,
  }
  readonly #logger: Logger
  #reported: GuardCounts = { ...this.counts }
  #nextMs = -Infinity

  constructor(logger: Logger) {
    this.#logger = logger
  }

  count(kind: keyof GuardCounts): void {
    this.counts[kind]++
  }

  report(nowMs: number): void {
    if (nowMs < this.#nextMs) return
    for (const kind of Object.keys(LINES) as (keyof GuardCounts)[]) {
      const happened = this.counts[kind] - this.#reported[kind]
      if (happened === 0) continue
      this.#logger.warn(LINES[kind](happened))
      this.#nextMs = nowMs + EVERY_MS
    }
    if (this.#nextMs > nowMs) this.#reported = { ...this.counts }
  }
}
