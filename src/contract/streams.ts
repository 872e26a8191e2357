/**
 * Streams as the HTTP layer uses them. `Server` implements these interfaces; code of an integrator may implement them
 * instead.
 *
 * @module
 */
import type { MillraceError } from '../errors.ts'
import type { Format } from '../hls/file-names.ts'
import type { Availability, DeliveryDirectives } from '../hls/store/delivery-directives.ts'
import type { FileLoan, StreamFiles } from '../hls/store/file-store.ts'
import type { StreamFile } from '../hls/store/stream-file.ts'
import type { StreamReport } from './report.ts'
import type { ServiceReport } from './service-report.ts'
import type { StreamState } from './state.ts'

export type { Availability, DeliveryDirectives, FileLoan, Format, StreamFile }

/** The calls of the API under the library's names. All throw `MillraceError`, or reject with it. */
export interface StreamControl {
  startStream(request: StartRequest): Promise<StartedStream>
  stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord>
  /** Disconnects the encoder, which may connect again after `banSec`. */
  kick(streamId: string, request?: KickRequest): StreamRecord | Promise<StreamRecord>
  status(streamId: string): StreamRecord | Promise<StreamRecord>
  /** @returns a page of the streams in the order of their ids */
  list(request?: ListRequest): StreamPage | Promise<StreamPage>
  /** @returns ingest nodes of the cluster; absent without one */
  nodes?(): Promise<readonly ClusterNode[]>
}

/** Ingest node of a cluster. */
export interface ClusterNode {
  readonly node: string
  /** URL at which other nodes reach it. */
  readonly url: string
  /** `all` or `ingest` */
  readonly role: string
  /** Whether its lease holds: otherwise it is gone, and other nodes adopt its streams. */
  readonly live: boolean
  /** Number of running streams that it owns. */
  readonly streams: number
}

export interface StartRequest {
  readonly streamId: string
  /** Replaces the webhook URLs of the stream; a new stream begins with `DEFAULT_WEBHOOK_URLS`. */
  readonly webhookUrls?: readonly string[]
  /** Gives the stream a passphrase of its own until it stops. */
  readonly encryption?: boolean
  /** `HLS_FORMATS` of the stream until it stops: at least one. */
  readonly formats?: readonly Format[]
  /** `HLS_SEGMENT_SEC` of the stream until it stops. */
  readonly segmentSec?: number
  /** `HLS_PART_MS` of the stream until it stops. */
  readonly partMs?: number
  /** `HLS_PLAYLIST_SEGMENTS` of the stream until it stops. */
  readonly playlistSegments?: number
  /** `SRT_LATENCY_MS` for encoders of the stream that connect from now on. */
  readonly latencyMs?: number
  /** Addresses and CIDR blocks from which encoders may connect from now on; default: any address. */
  readonly allowFrom?: readonly string[]
  /** Whether viewers need a playback token from now on; default: with `PLAYBACK_SECRET`, which `true` requires. */
  readonly playbackToken?: boolean
}

/** Options that a stream has of its own; absent ones are those of the service. */
export type StreamOptions = Pick<
  StartRequest,
  'formats' | 'segmentSec' | 'partMs' | 'playlistSegments' | 'latencyMs' | 'allowFrom'
>

export interface StopRequest {
  /** Revokes all stream keys issued so far; otherwise they become valid again when the stream is restarted. */
  readonly revoke?: boolean
}

export interface KickRequest {
  /** Seconds for which encoders of the stream are refused, unless it is started anew; default 0. */
  readonly banSec?: number
}

export interface ListRequest {
  /** Only streams in this state. */
  readonly status?: StreamState
  /** Maximum number of streams; default 100, which is also the limit. */
  readonly limit?: number
  /** `next` of the previous page; default: the first page. */
  readonly after?: string
}

export interface StreamPage {
  readonly streams: readonly Omit<StreamRecord, 'service'>[]
  /** Value of `after` for the next page; absent on the last page. */
  readonly next?: string
  readonly service?: ServiceReport
}

/** Where to play a stream. */
export interface PlaybackUrls {
  /** Playlist of whole segments in transport stream; `masterUrl` where the stream has no `ts`. */
  readonly playlistUrl: string
  /** Multivariant playlist, for players. */
  readonly masterUrl: string
}

export interface StartedStream extends PlaybackUrls {
  readonly streamId: string
  readonly status: StreamState
  /** Contains the stream key and the passphrase, both credentials. */
  readonly srtUrl: string
  readonly streamKey: string
  /** The stream's own passphrase, if it has one. */
  readonly passphrase?: string
  readonly expiresAt: Date
}

/** Response of `status` and `stop-stream`: the stream, and the load of the process that serves it. */
export type StreamRecord = StreamReport &
  PlaybackUrls & {
    /** Estimated number of viewers: those who requested a file in the last 30 s. */
    readonly viewers: number
    /** Whether viewers need a playback token. */
    readonly playbackToken: boolean
    readonly options: StreamOptions
    /** End of the ban of encoders, if one holds. */
    readonly bannedUntil?: Date
    /** Node that owns the stream, in a cluster; absent until an encoder has connected. */
    readonly node?: string
    /** Number of the claim under which that node owns it; a later claim has a higher one. */
    readonly fence?: number
    /** Number of changes that the registry of the cluster has not acknowledged. */
    readonly pendingWrites?: number
    /** Edges on other machines that read the stream; absent without any. */
    readonly edges?: readonly EdgeState[] | undefined
    /** The owner does not answer: only what the registry of the cluster knows is filled in. */
    readonly stale?: true
    readonly service?: ServiceReport
  }

/** Edge that has reported within 15 s. */
export interface EdgeState {
  /** `NODE_URL` of the edge, or its host and port. */
  readonly edge: string
  /** Duration of the media that the owner listed and the edge did not when it reported; 0, or one part, if it keeps up. */
  readonly lagMs: number
}

/** Source of streams for playback. */
export interface PlaybackSource {
  /** @returns undefined for an unknown stream, or one stopped longer than `HLS_LINGER_SEC` ago */
  findStream(streamId: string): PlayableStream | undefined
  /**
   * Counts a viewer to whom a file of the stream is sent; default: viewers are not counted. The identity is personal data,
   * not to be stored or logged.
   */
  countViewer?(stream: PlayableStream, viewer: ViewerIdentity): void
}

/** Texts that tell a viewer from others: the session id of a player, or the address and User-Agent of a client. */
export type ViewerIdentity = readonly string[]

/** Files at an edge, which has its refusals from the origin. */
export interface FileRefusals {
  /** Why a file that is not there was refused; undefined if that is unknown. */
  refusal(name: string): MillraceError | undefined
}

export interface PlayableStream {
  readonly status: StreamState
  readonly live: boolean
  /** Whether another node continues the stream; default: false. */
  readonly hasLeft?: boolean
  /** `playbackToken: false`: public although the service has `PLAYBACK_SECRET`. */
  readonly terms?: { readonly playbackToken?: boolean }
  /** Playlists, segments and parts by their names in the URL; `get` is enough without delivery directives. */
  readonly files: Pick<StreamFiles, 'get'> & Partial<StreamFiles & FileRefusals>
}
