/**
 * Result of a check, and its progress while it runs: what the reports are written from.
 *
 * @module
 */
import type { Finding } from './judge.ts'
import type { Summary } from './summary.ts'

export interface CheckResult {
  /** As given, without credentials. */
  readonly url: string
  /** Milliseconds since 1970. */
  readonly startedAtMs: number
  /** From the first request to the end of the last reply. */
  readonly durationSec: number
  /** Broken rules, in order of the table. */
  readonly findings: readonly Finding[]
  readonly summary: Summary
  /** Number of requests, failed ones included. */
  readonly requests: number
  /** Sum of all bodies, as transferred where known. */
  readonly bytes: number
  /** Requests without a whole reply. */
  readonly failures: number
  /** Exchanges that are not in the record, since it was full; 0 without a record. */
  readonly unrecorded: number
}

export interface Progress {
  readonly elapsedSec: number
  /** Duration asked for. */
  readonly seconds: number
  readonly requests: number
  readonly bytes: number
  /** Segments and parts loaded. */
  readonly segments: number
  readonly parts: number
  /** Live edge of the first media playlist, `segment 1042, part 3`; undefined before its first version. */
  readonly edge?: string
  /** Rules broken so far. */
  readonly broken: number
}
