/**
 * What the HTTP layer asks of the service behind it. `server.ts` answers; so may an integrator's own code.
 *
 * @module
 */
import type { StreamState } from '../stream/state.ts'

/** The three calls of the API, in the library's own words. All throw `MillraceError`. */
export interface StreamControl {
  startStream(request: StartRequest): Promise<StartedStream>
  stopStream(streamId: string): Promise<StreamReport>
  status(streamId: string): StreamReport
}

export interface StartRequest {
  readonly streamId: string
  /** Replaces the stream's list where given. */
  readonly webhookUrls?: readonly string[]
}

export interface StartedStream {
  readonly streamId: string
  readonly status: StreamState
  /** Holds the stream key: a credential. */
  readonly srtUrl: string
  readonly streamKey: string
  readonly expiresAt: Date
  readonly playlistUrl: string
}

/** What `status` and `stop-stream` tell of a stream. */
export interface StreamReport {
  readonly streamId: string
  readonly status: StreamState
  /** The playlist can be played and an encoder feeds it. */
  readonly live: boolean
  readonly startedAt: Date
  readonly liveSince?: Date
  readonly publisher?: PublisherReport
  readonly tracks: readonly TrackReport[]
  readonly playlistUrl: string
  readonly warnings: readonly Warning[]
}

export interface PublisherReport {
  /** `address:port` */
  readonly remote: string
  readonly rttMs: number
  readonly bitrateBps: number
  readonly packetsReceived: number
  readonly packetsLost: number
  readonly packetsRetransmitted: number
  readonly packetsDropped: number
}

export interface TrackReport {
  readonly pid: number
  readonly kind: 'video' | 'audio' | 'data'
  readonly codec: string
  readonly codecString?: string
  readonly width?: number
  readonly height?: number
  readonly frameRate?: number
  readonly sampleRate?: number
  readonly channels?: number
  readonly language?: string
}

export interface Warning {
  /** Stable, upper case, for example `NO_PAT`. */
  readonly code: string
  readonly message: string
}

/** Where playback finds streams. */
export interface PlaybackSource {
  /** undefined: no such stream, or its linger is over. */
  findStream(streamId: string): PlayableStream | undefined
}

export interface PlayableStream {
  readonly status: StreamState
  readonly live: boolean
  /** A file of the stream by its name in the URL; undefined where there is none (yet, or any more). */
  file(name: string): MediaFile | undefined
}

export interface MediaFile {
  readonly kind: 'media-playlist' | 'multivariant-playlist' | 'segment'
  /** Shared by all readers; not to be changed. */
  readonly bytes: Buffer
  /** Changes whenever the bytes do; a strong ETag without quotes. */
  readonly version: string
  /** Segment target duration of the stream in seconds: the unit of every cache lifetime. */
  readonly targetDurationSec: number
}
