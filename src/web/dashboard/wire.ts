/**
 * What the dashboard's page gets from the server, in JSON. This file imports nothing: it is compiled for browsers too.
 *
 * @module
 */

export interface SessionState {
  readonly open: boolean
  /** Whether a restart of the service or another password has ended the session, or it is one of another service of the host. */
  readonly lost: boolean
}

/** State of the service once a second, with a page of the list of streams. */
export interface Snapshot {
  /** Milliseconds since 1970. */
  readonly timeMs: number
  /** Rows of the page. */
  readonly rows: readonly StreamRow[]
  /** Counts from 0. */
  readonly page: number
  /** Number of rows before the page. */
  readonly first: number
  /** Number of rows of all pages. */
  readonly matches: number
  /** Number of streams that the search finds, by filter. */
  readonly counts: ListCounts
  readonly totals: ListTotals
  /** Whether there are more streams than the dashboard reads: they are neither found nor counted. */
  readonly isCut?: true
  /** Row of the stream whose details are shown; absent without one, and when it is gone. */
  readonly selected?: StreamRow
  /** Absent in those of nodes of a former version, which edges pass on. */
  readonly process?: ProcessFigures
  readonly load?: LoadFigures
  /** Ingest nodes of the cluster; absent without one, and while its registry does not answer. */
  readonly nodes?: readonly NodeRow[]
  /** URL below which there are `/video` and `/watch`; absent without rows. */
  readonly publicUrl?: string
}

/** States of rows, an encoder whose stream is not live so far being in `STREAMING`, and rows with warnings. */
export type ListFilter = StreamRow['status'] | 'LIVE' | 'WARNED'

type ListCounts = Readonly<Record<ListFilter | 'all', number>>

/** Figures of all streams. */
export interface ListTotals {
  /** Number of live streams. */
  readonly live: number
  readonly viewers: number
  /** Bitrate from encoders. */
  readonly inBps: number
  /** Bitrate from this process to viewers; absent until it is measured. */
  readonly outBps?: number
  /** Number of streams with warnings. */
  readonly warned: number
}

/** The process that serves the dashboard, the one for ingest. */
export interface ProcessFigures {
  /** Version of Millrace. */
  readonly version: string
  readonly uptimeSec: number
  readonly residentBytes: number
  /** CPU time of 10 s, in percent of one core; absent until it is measured. */
  readonly cpuPercent?: number
  /** Whether other processes serve viewers. */
  readonly hasWorkers?: true
}

interface LoadFigures {
  /** 99th percentile of the lateness of the event loop, in milliseconds. */
  readonly loopDelayMs: number
  readonly httpConnections: number
  /** Datagrams that the kernel dropped since the service started. */
  readonly kernelDrops?: number
}

/** An ingest node of the cluster. */
export interface NodeRow {
  readonly node: string
  readonly url: string
  readonly role: string
  /** Whether its lease holds. */
  readonly live: boolean
  /** Number of running streams that it owns. */
  readonly streams: number
}

/** A stream in the list. */
export interface StreamRow {
  readonly id: string
  readonly status: 'READY' | 'STREAMING' | 'INTERRUPTED' | 'STOPPED'
  readonly live: boolean
  /** Start of the current live period, in milliseconds since 1970. */
  readonly liveSinceMs?: number
  /** The encoder on air or, without one, a connected one; absent if there is none. */
  readonly encoder?: EncoderFigures
  /** Absent while no source is on air. */
  readonly onAir?: SourceName
  /** Absent for a stream that has had a main encoder alone. */
  readonly sources?: readonly SourceFigures[]
  /** The source that the service calls: `host:port`, its state, and why it is not connected; absent without one. */
  readonly pull?: string
  /** Estimated number of viewers. */
  readonly viewers: number
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
  /** Id of the node that owns it, in a cluster. */
  readonly node?: string
  /** Number of edges on other machines that read it, and how far the last of them is behind; absent without any. */
  readonly edges?: number
  readonly edgeLagMs?: number
  /** Absent without any. */
  readonly readers?: ReaderFigures
  /** Absent without any. */
  readonly pushes?: readonly PushFigures[]
  /** Whether viewers need a playback token. */
  readonly isProtected?: true
}

/** Readers of the transport stream over SRT, all together. */
export interface ReaderFigures {
  readonly count: number
  readonly bitrateBps: number
  readonly packetsDropped: number
}

/** A listener that the stream is sent to. */
export interface PushFigures {
  /** `host:port`, its state, and why it is not connected. */
  readonly peer: string
  /** Absent while it is not connected. */
  readonly bitrateBps?: number
  readonly packetsDropped?: number
}

/** Figures of the encoder's connection; those of SRT are absent for other protocols. */
export interface EncoderFigures {
  /** `address:port` */
  readonly remote: string
  /** Version of its SRT library. */
  readonly version?: string | undefined
  readonly bitrateBps: number
  readonly rttMs?: number | undefined
  readonly latencyMs?: number | undefined
  /** Retransmissions included. */
  readonly packetsReceived?: number | undefined
  readonly packetsLost?: number | undefined
  /** Retransmissions that were received. */
  readonly packetsRetransmitted?: number | undefined
  readonly packetsDropped?: number | undefined
  /** Lines of a bonded encoder. */
  readonly lines?: readonly LineFigures[]
}

export interface LineFigures {
  readonly line: number
  readonly remote: string
  readonly bitrateBps: number
  /** Absent unless the encoder reports them. */
  readonly rttMs?: number
  readonly packetsLost?: number
}

export type SourceName = 'main' | 'backup' | 'slate'

/** Where the media of a stream may come from. */
export interface SourceFigures {
  readonly source: SourceName
  /** READY: can go on air at once; CONNECTED: has sent no key frame so far. */
  readonly state: 'ON_AIR' | 'READY' | 'CONNECTED' | 'AWAY'
  /** Absent for a slate, and for an encoder that is away. */
  readonly encoder?: EncoderFigures
}

/** The last 10 minutes of a stream, oldest step first; null where there was no encoder. */
export interface History {
  readonly stepSec: number
  /** End of the last step, in milliseconds since 1970. */
  readonly endMs: number
  readonly bitrateBps: readonly (number | null)[]
  readonly rttMs: readonly (number | null)[]
  /** Packets lost in the step. */
  readonly packetsLost: readonly (number | null)[]
  readonly viewers: readonly (number | null)[]
}

/** What the page of a stream shows besides its row. */
export interface StreamDetail {
  readonly playlistUrl: string
  readonly masterUrl: string
  /** In milliseconds: SRT, part or segment, distance from the live edge, and their sum; absent unless it is live. */
  readonly latency?: {
    readonly srtMs: number
    readonly partMs: number
    readonly holdBackMs: number
    readonly expectedMs: number
  }
  readonly tracks: readonly TrackFigures[]
  /** Absent unless the stream is interrupted. Times are milliseconds since 1970. */
  readonly interruption?: { readonly sinceMs: number; readonly reason: string }
  /** When the stream stops by itself, if no encoder comes. */
  readonly stopsAtMs?: number
  /** Absent without an archive. */
  readonly archive?: ArchiveFigures
  /** Those that hold, the newest first. */
  readonly keys: readonly KeyFigures[]
  /** Newest first. */
  readonly events: readonly StreamEvent[]
  readonly webhooks: readonly WebhookDelivery[]
  /** Whether another node has the events. */
  readonly isElsewhere?: true
}

/** A stream key, without what proves it. Times are milliseconds since 1970. */
export interface KeyFigures {
  readonly id: string
  readonly source: 'main' | 'backup'
  /** Absent for a key that does not tell. */
  readonly issuedMs?: number
  readonly expiresMs: number
  /** When an encoder has connected with it last; absent if none has. */
  readonly usedMs?: number
}

export interface ArchiveFigures {
  readonly state: 'RUNNING' | 'BEHIND' | 'COMPLETE' | 'FAILED'
  /** Its multivariant playlist; absent until it is stored. */
  readonly url?: string | undefined
  readonly durationSec: number
  readonly gapSec: number
  /** Age of the oldest media that waits for the store. */
  readonly lagSec: number
  /** What the store answered last, if it failed. */
  readonly error?: string | undefined
}

export interface TrackFigures {
  /** Codec and parameters in words. */
  readonly text: string
  readonly bitrateBps?: number
  /** Duration of a GOP. */
  readonly gopSec?: number
}

/** What may happen to a stream. */
export type StreamEventType =
  | 'started'
  | 'resumed'
  | 'key'
  | 'connected'
  | 'live'
  | 'source'
  | 'standby-lost'
  | 'archive-started'
  | 'archive-completed'
  | 'archive-failed'
  | 'lost'
  | 'reader-connected'
  | 'reader-left'
  | 'push-connected'
  | 'push-lost'
  | 'rejected'
  | 'warning'
  | 'webhook-failed'
  | 'stopped'

export interface StreamEvent {
  /** Milliseconds since 1970; of the last one, if it was repeated. */
  readonly timeMs: number
  readonly type: StreamEventType
  /** A reason of the API, an address, or a sentence; may be empty. */
  readonly detail: string
  /** How often it came in a row; absent for once. */
  readonly times?: number
}

/** A webhook event and one of its receivers. */
export interface WebhookDelivery {
  /** Latest attempt, in milliseconds since 1970. */
  readonly timeMs: number
  /** Type of the event. */
  readonly type: string
  /** Origin of its URL: path and query are often secret. */
  readonly receiver: string
  readonly outcome: 'delivered' | 'retried' | 'dropped'
  readonly attempts: number
  /** Status of the latest response; absent without one. */
  readonly status?: number
  /** Why the latest attempt failed. */
  readonly failure?: string
}

/** What the checker found at a stream. */
export interface CheckReport {
  readonly durationSec: number
  /** Whether the limit of its size ended the check. */
  readonly isCutShort: boolean
  readonly requests: number
  /** Number of playlists that were read; 0: nothing could be checked. */
  readonly playlists: number
  /** What each player does with the stream. */
  readonly outcomes: Readonly<Record<string, 'plays' | 'degrades' | 'stalls' | 'stops'>>
  /** Broken rules, worst first. */
  readonly findings: readonly CheckFinding[]
}

export interface CheckFinding {
  readonly id: string
  readonly clause: string
  readonly level: 'MUST' | 'SHOULD'
  /** Worst effect on a player; absent if no player is known to suffer. */
  readonly severity?: 'degrades' | 'stalls' | 'stops'
  readonly requirement: string
  readonly remedy: string
  readonly count: number
  /** The first contradiction: a claim, and what was seen. */
  readonly evidence: readonly string[]
}

/** QR codes of the URLs for players, and for all that is not a player; absent for a URL that is too long. */
export interface PlayQrCodes {
  readonly master?: QrCode
  readonly playlist?: QrCode
}

/** QR code as a path of an SVG. */
export interface QrCode {
  /** Width and height in modules, with the quiet zone. */
  readonly size: number
  /** Value of `d`: a square for each dark module. */
  readonly path: string
}
