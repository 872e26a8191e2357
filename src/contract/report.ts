/**
 * Reports on streams, for `status`, webhooks and integrators.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'
import type { StreamState } from './state.ts'

export interface StreamReport {
  readonly streamId: string
  readonly status: StreamState
  /** Whether an encoder feeds a playlist that can be played. */
  readonly live: boolean
  readonly startedAt: Date
  /** Start of the current uninterrupted live period. */
  readonly liveSince?: Date
  readonly publisher?: PublisherReport
  readonly tracks: readonly TrackReport[]
  readonly playlist: PlaylistReport
  /** Received media that is in no finished segment, in bytes; counts toward the memory for segments. */
  readonly queuedBytes: number
  readonly totals: StreamTotals
  readonly warnings: readonly Warning[]
}

/** The encoder's connection, with counters since it was established; those of SRT if it publishes over SRT. */
export type PublisherReport = ConnectionReport &
  (SrtCounters | { readonly [Name in keyof SrtCounters]?: undefined })

export interface ConnectionReport {
  /** `address:port` */
  readonly remote: string
  /** Bitrate of the payload received in the last second, retransmissions included. */
  readonly bitrateBps: number
  /** Payload received, duplicates and retransmissions included. */
  readonly bytesReceived: number
}

/** State and counters of an SRT connection. docs/api.md has the names in libsrt. */
export interface SrtCounters {
  /** Version of the peer's SRT library, for example `1.5.1`. */
  readonly peerVersion: string
  /** Negotiated receive latency: how long the receiver waits for a missing packet. */
  readonly latencyMs: number
  /** Smoothed round-trip time; 100 until the first measurement. */
  readonly rttMs: number
  /** Drift of the encoder's clock and of the network delay since the connection was established. */
  readonly driftMs: number
  /** Packets received, duplicates and retransmissions included. */
  readonly packetsReceived: number
  /** Packets that were missing when a later one arrived, whether retransmitted in time or not. */
  readonly packetsLost: number
  /** Received packets that were retransmissions. */
  readonly packetsRetransmitted: number
  /** `packetsRetransmitted` / `packetsReceived`, 0 to 1. */
  readonly retransmitRatio: number
  /** Packets that did not arrive in time. */
  readonly packetsDropped: number
  /** Packets that arrived after they were counted as dropped. */
  readonly packetsBelated: number
  readonly packetsDuplicate: number
  /** Packets that cannot be decrypted; not counted as received. */
  readonly packetsUndecryptable: number
  /** Packets of a packet filter (FEC), discarded; not counted as received. */
  readonly packetsFec: number
  /** Packets discarded because they were too far ahead of a missing one to be buffered. */
  readonly packetsOverflowed: number
  /** Jumps of the sequence number that the receiver followed. */
  readonly sequenceJumps: number
  /** Packets that currently wait behind a missing one. */
  readonly packetsBuffered: number
  /** Packets that may overtake a missing one before it is reported as lost; learned from reordering. */
  readonly reorderTolerancePackets: number
  readonly acksSent: number
  readonly naksSent: number
  /** NAKs not sent, to limit the bandwidth toward the encoder. */
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
  /** `SDR`, `HLG` or `PQ`. */
  readonly videoRange?: string
  readonly sampleRate?: number
  readonly channels?: number
  readonly language?: string
}

/** Current length of the main playlist, and what lack of memory has cost all playlists since the stream started. */
export interface PlaylistReport {
  /** Available segments in the playlist. */
  readonly listedSegments: number
  /** Segments that the playlist has when memory suffices. */
  readonly wantedSegments: number
  /** Segments released earlier than RFC 8216 6.2.2 allows. */
  readonly releasedEarly: number
  /** Segments not stored for lack of memory, which the playlist lists as gaps (EXT-X-GAP). */
  readonly gaps: number
}

/** Totals since the stream started, over all connections of encoders. */
export interface StreamTotals {
  /** Segments of all renditions, without gaps. */
  readonly segments: number
  readonly segmentBytes: number
  /** Duration of the main rendition, gaps included. */
  readonly durationSec: number
  /** SRT packets whose media was dropped because demuxing it costs too much CPU. */
  readonly payloadsDropped: number
  /** Number of encoder connections. */
  readonly publishers: number
}

/** A problem of the source or its connection, for the operator to fix. */
export interface Warning {
  /** Stable code in upper case, for example `NO_PAT`. */
  readonly code: string
  readonly message: string
}

export function reportTrack(track: Track): TrackReport {
  const { pid, kind, codec, language, parameters } = track
  return { pid, kind, codec, ...(language === undefined ? {} : { language }), ...parameters }
}
