/**
 * What the HTTP layer asks of the service behind it. `server.ts` answers; so may an integrator's own code.
 *
 * @module
 */
import type { FileStore } from '../hls/store/file-store.ts'
import type { StreamFile } from '../hls/store/stream-file.ts'
import type { ServiceLoad } from '../service/load-monitor.ts'
import type { StreamReport } from './report.ts'
import type { StreamState } from './state.ts'

export type { StreamFile }

/** The three calls of the API, in the library's own words. All throw `MillraceError`. */
export interface StreamControl {
  startStream(request: StartRequest): Promise<StartedStream>
  stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord>
  status(streamId: string): StreamRecord
}

export interface StartRequest {
  readonly streamId: string
  /** Replaces the stream's list where given; a new stream without one has `DEFAULT_WEBHOOK_URLS`. */
  readonly webhookUrls?: readonly string[]
  /** The stream gets a passphrase of its own, and keeps it while it runs. */
  readonly encryption?: boolean
}

export interface StopRequest {
  /** Refuses all stream keys issued so far; otherwise they publish again once the stream is started anew. */
  readonly revoke?: boolean
}

export interface StartedStream {
  readonly streamId: string
  readonly status: StreamState
  /** Holds the stream key and the passphrase: credentials. */
  readonly srtUrl: string
  readonly streamKey: string
  /** Where the stream has one of its own. */
  readonly passphrase?: string
  readonly expiresAt: Date
  readonly playlistUrl: string
}

/** What `status` and `stop-stream` tell of a stream, and of the process that serves it. */
export type StreamRecord = StreamReport & {
  readonly playlistUrl: string
  readonly service?: ServiceLoad | undefined
}

/** Where playback finds streams. */
export interface PlaybackSource {
  /** undefined: no such stream, or its linger is over. */
  findStream(streamId: string): PlayableStream | undefined
}

export interface PlayableStream {
  readonly status: StreamState
  readonly live: boolean
  /** Playlists and segments by their names in the URL. */
  readonly files: Pick<FileStore, 'get'>
}
