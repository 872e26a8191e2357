/**
 * Streams as the HTTP layer uses them. `Server` implements these interfaces; code of an integrator may implement them
 * instead.
 *
 * @module
 */
import type { Availability, DeliveryDirectives } from '../hls/store/delivery-directives.ts'
import type { FileLoan, StreamFiles } from '../hls/store/file-store.ts'
import type { StreamFile } from '../hls/store/stream-file.ts'
import type { StreamReport } from './report.ts'
import type { ServiceReport } from './service-report.ts'
import type { StreamState } from './state.ts'

export type { Availability, DeliveryDirectives, FileLoan, StreamFile }

/** The three calls of the API under the library's names. All throw `MillraceError`. */
export interface StreamControl {
  startStream(request: StartRequest): Promise<StartedStream>
  stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord>
  status(streamId: string): StreamRecord
}

export interface StartRequest {
  readonly streamId: string
  /** Replaces the webhook URLs of the stream; a new stream begins with `DEFAULT_WEBHOOK_URLS`. */
  readonly webhookUrls?: readonly string[]
  /** Gives the stream a passphrase of its own until it stops. */
  readonly encryption?: boolean
}

export interface StopRequest {
  /** Revokes all stream keys issued so far; otherwise they become valid again when the stream is restarted. */
  readonly revoke?: boolean
}

export interface StartedStream {
  readonly streamId: string
  readonly status: StreamState
  /** Contains the stream key and the passphrase, both credentials. */
  readonly srtUrl: string
  readonly streamKey: string
  /** The stream's own passphrase, if it has one. */
  readonly passphrase?: string
  readonly expiresAt: Date
  readonly playlistUrl: string
}

/** Response of `status` and `stop-stream`: the stream, and the load of the process that serves it. */
export type StreamRecord = StreamReport & {
  readonly playlistUrl: string
  readonly service?: ServiceReport
}

/** Source of streams for playback. */
export interface PlaybackSource {
  /** @returns undefined for an unknown stream, or one stopped longer than `HLS_LINGER_SEC` ago */
  findStream(streamId: string): PlayableStream | undefined
}

export interface PlayableStream {
  readonly status: StreamState
  readonly live: boolean
  /** Playlists, segments and parts by their names in the URL; `get` is enough without delivery directives. */
  readonly files: Pick<StreamFiles, 'get'> & Partial<StreamFiles>
}
