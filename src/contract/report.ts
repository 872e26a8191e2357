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
  readonly playlist: PlaylistReport
  readonly totals: StreamTotals
  readonly warnings: readonly Warning[]
}

/** The encoder's connection; counters begin when it stood. docs/api.md has libsrt's name for each. */
export interface PublisherReport {
  /** `address:port` */
  readonly remote: string
  /** What its SRT says of itself, for example `1.5.1`. */
  readonly peerVersion: string
  /** How long a missing packet is waited for: what both sides agreed on. */
  readonly latencyMs: number
  /** Smoothed; 100 until it was measured. */
  readonly rttMs: number
  /** How far the encoder's clock and the way have moved since the connection stood. */
  readonly driftMs: number
  /** Payload of the last second, with what was sent again. */
  readonly bitrateBps: number
  /** Payload, with what was sent again. */
  readonly bytesReceived: number
  /** With duplicates and what was sent again. */
  readonly packetsReceived: number
  /** Missing when a later one arrived, whether repaired or not. */
  readonly packetsLost: number
  /** Of those received, the ones that were sent again. */
  readonly packetsRetransmitted: number
  /** `packetsRetransmitted` / `packetsReceived`, 0 to 1. */
  readonly retransmitRatio: number
  /** Given up: not there in time. */
  readonly packetsDropped: number
  /** Arrived after they had been given up. */
  readonly packetsBelated: number
  readonly packetsDuplicate: number
  /** Not among those received. */
  readonly packetsUndecryptable: number
  /** Of a packet filter, set aside; not among those received. */
  readonly packetsFec: number
  /** Came too far ahead of a missing one to be kept. */
  readonly packetsOverflowed: number
  /** Jumps of the sequence number that reception followed. */
  readonly sequenceJumps: number
  /** Wait behind a missing one at this moment. */
  readonly packetsBuffered: number
  /** How many may overtake one before it is taken for lost: learned from those that came late. */
  readonly reorderTolerancePackets: number
  readonly acksSent: number
  readonly naksSent: number
  /** Not sent, because they would take too much of the way back. */
  readonly naksWithheld: number
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

/** What the main playlist lists, and what memory did not suffice for since the stream started, over all playlists. */
export interface PlaylistReport {
  /** Segments that can be fetched. */
  readonly listedSegments: number
  /** What it lists where there is memory for it. */
  readonly wantedSegments: number
  /** Segments that were released before the time that RFC 8216 6.2.2 asks for. */
  readonly releasedEarly: number
  /** Segments that are missing in the playlist. */
  readonly gaps: number
}

/** Counted since the stream started, over all encoder connections. */
export interface StreamTotals {
  readonly segments: number
  readonly segmentBytes: number
  readonly durationSec: number
  /** SRT packets whose media was dropped, since it cost too much work. */
  readonly payloadsDropped: number
  /** How often an encoder connected. */
  readonly publishers: number
}

/** Something about the source, or the way from it, that an operator should mend. */
export interface Warning {
  /** Stable, upper case, for example `NO_PAT`. */
  readonly code: string
  readonly message: string
}

export function reportTrack(track: Track): TrackReport {
  const { pid, kind, codec, language, parameters } = track
  return { pid, kind, codec, ...(language === undefined ? {} : { language }), ...parameters }
}
