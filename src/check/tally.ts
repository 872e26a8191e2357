/**
 * Figures of a check while it runs.
 *
 * @module
 */
import type { Progress } from './check-result.ts'
import type { Exchange } from './exchange.ts'

/** Input: `add` each exchange. */
export class Tally {
  startedAtMs: number | undefined
  endedAtMs = 0
  requests = 0
  bytes = 0
  failures = 0
  segments = 0
  parts = 0

  add({ role, sentAtMs, reply }: Exchange): void {
    this.startedAtMs = Math.min(this.startedAtMs ?? sentAtMs, sentAtMs)
    this.endedAtMs = Math.max(this.endedAtMs, reply?.endedAtMs ?? sentAtMs)
    this.requests++
    if (reply === undefined) {
      this.failures++
      return
    }
    this.bytes += reply.encodedBytes ?? reply.body.length
    if (reply.status >= 300) return
    if (role === 'segment') this.segments++
    if (role === 'part' || role === 'hint') this.parts++
  }

  get durationSec(): number {
    return (this.endedAtMs - (this.startedAtMs ?? this.endedAtMs)) / 1000
  }

  progress(seconds: number, edge: string | undefined, broken: number): Progress {
    const { durationSec: elapsedSec, requests, bytes, segments, parts } = this
    return {
      elapsedSec,
      seconds,
      requests,
      bytes,
      segments,
      parts,
      broken,
      ...(edge !== undefined && { edge }),
    }
  }
}
