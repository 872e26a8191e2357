/**
 * Terms of a stream for its encoders. A change counts from the next connection on.
 *
 * @module
 */
import type { BlockList } from 'node:net'

export interface EncoderTerms {
  /** Time until which encoders are refused, in microseconds of `Clock.nowUs`; default: no ban. */
  readonly bannedUntilUs?: number
  /** Addresses from which encoders may connect; default: any address. */
  readonly allowFrom?: BlockList
  /** Min receive latency; default `SRT_LATENCY_MS`. */
  readonly latencyMs?: number
}
