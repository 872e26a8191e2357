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
  /** Latency that viewers can expect; absent until the playlist is published. */
  readonly latency?: LatencyReport
  /** Size of received media that is in no finished segment, in bytes; counts toward `CACHE_MAX_MIB`. */
  readonly queuedBytes: number
  readonly totals: StreamTotals
  readonly warnings: readonly Warning[]
}

/** Connection of the encoder, with counters since it was established. Has `SrtCounters` if it is an SRT connection. */
export type PublisherReport = ConnectionReport &
  (SrtCounters | { readonly [Name in keyof SrtCounters]?: undefined })

export interface ConnectionReport {
  /** `address:port` */
  readonly remote: string
  /** Bitrate of the payload received in the last second, duplicates and retransmissions included. */
  readonly bitrateBps: number
  /** Size of the payload received, duplicates and retransmissions included. */
  readonly bytesReceived: number
}

/** State and counters of an SRT connection. docs/api.md lists the corresponding names in libsrt. */
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
  /** Packets that were missing when a later packet arrived, whether repaired or not. */
  readonly packetsLost: number
  /** Received packets that were retransmissions. */
  readonly packetsRetransmitted: number
  /** `packetsRetransmitted` / `packetsReceived`, 0 to 1. */
  readonly retransmitRatio: number
  /** Lost packets that were not repaired in time. */
  readonly packetsDropped: number
  /** Packets that arrived after they were counted as dropped. */
  readonly packetsBelated: number
  readonly packetsDuplicate: number
  /** Packets in clear despite encryption, encrypted without it, or without a known key; not counted as received. */
  readonly packetsUndecryptable: number
  /** Packets of a packet filter (FEC), discarded; not counted as received. */
  readonly packetsFec: number
  /** Packets discarded because they were too far ahead of a missing packet to be buffered. */
  readonly packetsOverflowed: number
  /** Jumps of the sequence number that the receiver followed. */
  readonly sequenceJumps: number
  /** Packets that currently wait behind a missing packet. */
  readonly packetsBuffered: number
  /** Packets that may overtake a missing packet before it is reported as lost; learned from reordering. */
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
  /** Whether the video has contained CEA-608 or CEA-708 captions. */
  readonly closedCaptions?: boolean
  readonly sampleRate?: number
  readonly channels?: number
  readonly language?: string
}

/** Length of the main playlist, and segments of all playlists lost to lack of memory since the stream started. */
export interface PlaylistReport {
  /** Available segments in the main playlist. */
  readonly listedSegments: number
  /** Minimum number of segments in a playlist when memory suffices: `HLS_PLAYLIST_SEGMENTS`. */
  readonly wantedSegments: number
  /** Segments released earlier than RFC 8216 6.2.2 allows. */
  readonly releasedEarly: number
  /** Segments not stored for lack of memory, which their playlist lists as gaps (EXT-X-GAP). */
  readonly gaps: number
}

/** Latency from the arrival at the encoder's SRT sender to the screen of a player that starts where the playlist says. */
export interface LatencyReport {
  /** Latency of the SRT connection; 0 without an encoder. */
  readonly srtMs: number
  /** Duration of the media that must be complete before players get it: PART-TARGET or, without parts, a segment. */
  readonly partMs: number
  /** Distance from the end of the playlist at which players play: PART-HOLD-BACK or, without parts, HOLD-BACK. */
  readonly holdBackMs: number
  /** Sum of all three. The encoder, the network to the viewer and the display are not included. */
  readonly expectedMs: number
}

/** Totals since the stream started, over all encoder connections. */
export interface StreamTotals {
  /** Number of segments of all renditions, gaps excluded. */
  readonly segments: number
  readonly segmentBytes: number
  /** Duration of the main rendition, gaps included. */
  readonly durationSec: number
  /** SRT packets whose payload was dropped because demuxing and packaging the media costs too much CPU. */
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
