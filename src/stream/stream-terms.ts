/**
 * Terms of a stream for its encoders, from their next connection on, and for its viewers, from their next request on.
 *
 * @module
 */
import type { BlockList } from 'node:net'

export interface StreamTerms {
  /** Time until which encoders are refused, in microseconds of `Clock.nowUs`; default: no ban. */
  readonly bannedUntilUs?: number
  /** Addresses from which encoders may connect; default: any address. */
  readonly allowFrom?: BlockList
  /** Min receive latency; default `SRT_LATENCY_MS`. */
  readonly latencyMs?: number
  /** Whether viewers need a playback token; default: with `PLAYBACK_SECRET`. */
  readonly playbackToken?: boolean
}
