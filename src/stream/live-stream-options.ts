/**
 * What a stream is created with, and what start-stream changes while it runs.
 *
 * @module
 */
import type { OwnPolicy } from '../api/stream-options.ts'
import type { Clock } from '../timing/clock.ts'
import type { TrackPolicy } from '../hls/rendition/rendition-tracks.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { StreamCheckpoint } from '../hls/playlist/checkpoint.ts'
import type { MediaOptions } from '../hls/media-options.ts'
import type { MediaSource } from '../hls/playlist/earlier-segments.ts'
import type { CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import type { EncoderSource, StopReason } from '../api/records.ts'
import type { WorkBudget } from './work-budget.ts'

/** Stream of an earlier process, which goes on under the same URLs. */
export interface ContinuedStream {
  /** As `parseCheckpoint` returns it. */
  readonly checkpoint: StreamCheckpoint
  /** See `LiveStream.run`; default: a new one. */
  readonly run?: string | undefined
  /** Under which this process owns the stream in a cluster: it grows with each owner. */
  readonly fence?: number | undefined
  /** Media of its segments; those without are listed as gaps. Default: none. */
  readonly mediaOf?: MediaSource | undefined
  /** Why the stream has ended: it lingers, and no event tells of it. Default: it goes on. */
  readonly ended?: StopReason | undefined
}

export interface LiveStreamOptions extends MediaOptions {
  readonly clock: Clock
  readonly cache: SegmentCache
  /** Identifies what this process serves of the stream; part of its segment URIs. */
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
  /** Webhook URLs until others are configured; default: none. */
  readonly webhookUrls?: readonly string[]
  readonly lingerSec: number
  readonly reconnectGraceSec: number
  /** Maximum payload rate of an encoder, in bits per second; default: no limit. */
  readonly maxBitrateBps?: number
  /** Gets what a listener of an event throws; default: the command that has caused the event throws it. */
  readonly onListenerError?: (error: unknown) => void
  /** CPU budget of the media of the main encoder; default: a new one. */
  readonly budget?: WorkBudget
  /** Time without a packet after which the other encoder goes on air; default 500. */
  readonly failoverMs?: number
  /** Time without a pause or damage after which the preferred encoder goes on air again; default 10. */
  readonly failbackSec?: number
  /** Time without an encoder after which the slate goes on air; default 2. */
  readonly slateAfterSec?: number
  /** Reads a slate; undefined until it is loaded, or if it cannot be. Default: there is none. */
  readonly readSlate?: (name: string) => Buffer | undefined
}

/** What may change while the stream runs; a connected encoder stays. */
export interface StreamConfiguration {
  /** URLs of the webhooks that receive the events of the stream. */
  readonly webhookUrls: readonly string[]
  /** Encryption required of encoders; undefined: none. The passphrase is a secret: no report contains it. */
  readonly encryption: { readonly passphrase: string; readonly sinceSec: number } | undefined
  /** SRT URL of the source that this service calls itself; undefined: none. A secret, too. */
  readonly pullUrl: string | undefined
  /** SRT URLs of listeners that get the stream. Secrets: no report contains them. */
  readonly pushUrls: readonly string[]
  readonly policy: StreamPolicy
}

/** Policy for encoders, from their next connection on, for viewers, from their next request on, and for the archive. */
export interface StreamPolicy extends OwnPolicy {
  /** Time until which encoders are refused, in microseconds of `Clock.nowUs`; default: no ban. */
  readonly bannedUntilUs?: number
  /** Encoder that the stream fails back to; default: the main one. */
  readonly preferredSource?: EncoderSource
}
