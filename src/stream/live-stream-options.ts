/**
 * Settings of a stream.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import type { TrackPolicy } from '../hls/rendition/carried-tracks.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { StreamManifest } from '../hls/manifest.ts'
import type { MediaOptions } from '../hls/media-options.ts'
import type { MediaSource } from '../hls/playlist/earlier-segments.ts'
import type { CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import type { StopReason } from '../contract/state.ts'
import type { WorkBudget } from './work-budget.ts'

/** Stream of an earlier process, which goes on under the same URLs. */
export interface ContinuedStream {
  /** As `parseManifest` returns it. */
  readonly manifest: StreamManifest
  /** Media of its segments; those without are listed as gaps. Default: none. */
  readonly mediaOf?: MediaSource | undefined
  /** Why the stream has ended: it lingers, and no event tells of it. Default: it goes on. */
  readonly ended?: StopReason | undefined
}

export interface LiveStreamOptions extends MediaOptions {
  readonly clock: Clock
  readonly cache: SegmentCache
  /** Identifier of this run of the stream, from start to stop; part of its segment URIs. */
  readonly epoch: string
  /** Sequence numbers of the first segment, unless the stream continues an earlier one; default 0. */
  readonly sequenceStart?: SequenceNumbers
  /** Stream to continue; default: a new one. */
  readonly continued?: ContinuedStream | undefined
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
