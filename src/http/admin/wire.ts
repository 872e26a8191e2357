/**
 * What the dashboard's page gets from the server, in JSON. This file imports nothing: it is compiled for browsers too.
 *
 * @module
 */

/** State of the service once a second, with a page of the list of streams. */
export interface Snapshot {
  /** Milliseconds since 1970. */
  readonly timeMs: number
  readonly rows: readonly StreamRow[]
  /** `after` of the next page; absent on the last page. */
  readonly next?: string
  readonly load?: LoadFigures
  /** Ingest nodes of the cluster; absent without one, and while its registry does not answer. */
  readonly nodes?: readonly NodeRow[]
  /** URL below which there are `/video` and `/watch`; absent without rows. */
  readonly publicUrl?: string
}

export interface LoadFigures {
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
  /** Absent without an encoder. */
  readonly encoder?: EncoderFigures
  /** Estimated number of viewers. */
  readonly viewers: number
  /** Tracks in words. */
  readonly tracks: readonly string[]
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
  /** Id of the node that owns it, in a cluster. */
  readonly node?: string
  /** Number of edges on other machines that read it, and how far the last of them is behind; absent without any. */
  readonly edges?: number
  readonly edgeLagMs?: number
  /** Whether viewers need a playback token. */
  readonly isProtected?: true
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
  readonly packetsReceived?: number | undefined
  readonly packetsLost?: number | undefined
  readonly packetsDropped?: number | undefined
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

/** QR code as a path of an SVG. */
export interface QrCode {
  /** Width and height in modules, with the quiet zone. */
  readonly size: number
  /** Value of `d`: a square for each dark module. */
  readonly path: string
}
