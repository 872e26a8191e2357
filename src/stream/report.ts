/**
 * What a stream tells of itself: to `status`, to webhooks, to integrators.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'
import type { StreamState } from './state.ts'

export interface StreamReport {
  readonly streamId: string
  readonly status: StreamState
  /** The playlist can be played and an encoder feeds it. */
  readonly live: boolean
  readonly startedAt: Date
  /** Since when it is live without a break. */
  readonly liveSince?: Date
  readonly publisher?: PublisherReport
  readonly tracks: readonly TrackReport[]
  readonly totals: StreamTotals
  readonly warnings: readonly Warning[]
}

/** The encoder's connection, counted since it stood. */
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
  readonly kind: Track['kind']
  readonly codec: Track['codec']
  readonly codecString?: string
  readonly width?: number
  readonly height?: number
  readonly frameRate?: number
  readonly sampleRate?: number
  readonly channels?: number
  readonly language?: string
}

/** Counted since the stream started, over all encoder connections. */
export interface StreamTotals {
  readonly segments: number
  readonly segmentBytes: number
  readonly durationSec: number
  /** How often an encoder connected. */
  readonly publishers: number
}

/** Something about the source that an operator should mend. */
export interface Warning {
  /** Stable, upper case, for example `NO_PAT`. */
  readonly code: string
  readonly message: string
}

export function reportTrack(track: Track): TrackReport {
  const { pid, kind, codec, language, parameters } = track
  return { pid, kind, codec, ...(language === undefined ? {} : { language }), ...parameters }
}
