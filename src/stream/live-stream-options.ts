/**
 * Settings of a stream.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import type { TrackPolicy } from '../hls/rendition/carried-tracks.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import type { WorkBudget } from './work-budget.ts'

/** Settings that a stream may have of its own. */
export interface MediaOptions {
  readonly segmentSec: number
  readonly playlistSegments: number
  /** Desired duration of a part of low-latency HLS; default: no parts. */
  readonly partSec?: number | undefined
}

export interface LiveStreamOptions extends MediaOptions {
  readonly clock: Clock
  readonly cache: SegmentCache
  /** Identifier of this run of the stream, from start to stop; part of its segment URIs. */
  readonly epoch: string
  /** Sequence numbers of the first segment; default 0. */
  readonly sequenceStart?: SequenceNumbers
  readonly maxSegmentSec: number
  /** Program to carry for encoders that select none; default: the first with video. */
  readonly program?: ProgramChoice | undefined
  /** Tracks to carry; default `compatible`. */
  readonly tracks?: TrackPolicy
  /** Claim about captions in the playlist; default `auto`. */
  readonly captions?: CaptionsPolicy
  readonly lingerSec: number
  readonly reconnectGraceSec: number
  /** Maximum payload rate of an encoder, in bits per second; default: no limit. */
  readonly maxBitrateBps?: number
  /** CPU budget of the stream's media; default: a new one. */
  readonly budget?: WorkBudget
}
