/**
 * The service as a program that uses it as a library sees it: less than the classes behind it have.
 *
 * @module
 */
import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StreamControl } from './api/control.ts'
import type { EncoderSource, StreamPage, StreamRecord, StreamReport } from './api/records.ts'
import type { KickRequest, ListRequest } from './api/requests.ts'
import { createServer as createInternalServer } from './create-server.ts'
import type { StreamFiles } from './hls/store/file-store.ts'
import type { PlayableStream, PlaybackSource } from './playback/playback-source.ts'
import type { UnreadyReason } from './service/health.ts'
import type { ServerOptions } from './service/open-server.ts'
import type { CloseOptions } from './service/server.ts'
import type { StreamEvents } from './stream/live-stream.ts'

/**
 * Starts the service. If the start fails, nothing is left running.
 *
 * @throws {MillraceError} `CONFIG_INVALID` with the options and their allowed values, or `ADDRESS_IN_USE` with the address
 */
export function createServer(options: ServerOptions): Promise<Server> {
  // The streams have events that are not for programs, which makes their emitters differ.
  return createInternalServer(options) as Promise<Server>
}

/**
 * Handler of requests for `node:http`, Express and Connect. It answers at any time.
 *
 * @param next  called for a request for which there is no route, of which nothing was read; default: it gets 404
 */
export type RequestHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: () => void,
) => void

/** Events of a server. */
export interface ServerEvents {
  /** A stream with events of its own was started, resumed, or taken over from another node. */
  stream: [stream: LiveStream]
}

/**
 * A running service. In a cluster `status`, `list`, `kick`, `switchSource` and `findStream` are for the streams of this
 * process, and `control` for those of all nodes. Refusals are a `MillraceError`.
 */
export interface Server extends EventEmitter<ServerEvents>, StreamControl, PlaybackSource {
  /** The calls of the API, as `HTTP_PORT` has them: in a cluster, for the streams of all nodes. */
  readonly control: StreamControl
  /**
   * Answers a request that came to a server of the application as `http.port` does. Keeps its `this`: it can be passed to
   * `createServer` of `node:http`, and to `use` of Express and Connect, before anything that reads bodies.
   */
  readonly handler: RequestHandler
  /** TCP port of the HTTP server; 0 with `http: false`. */
  readonly httpPort: number
  /** UDP port of the SRT listener. */
  readonly srtPort: number
  /** Base of public HTTP URLs, without a slash at the end. */
  readonly publicUrl: string
  /** Why no new streams are to be sent here; empty when ready. */
  readonly unreadyReasons: readonly UnreadyReason[]
  /** Disconnects the encoder, which may connect again after `banSec`. */
  kick(streamId: string, request?: KickRequest): StreamRecord
  /** Puts an encoder on air at its next key frame, and fails back to it from now on. */
  switchSource(streamId: string, source: EncoderSource): StreamRecord
  /** State, figures, options and warnings of a stream. */
  status(streamId: string): StreamRecord
  /** A page of the streams in the order of their ids. */
  list(request?: ListRequest): StreamPage
  /** @returns undefined for an unknown stream, or one stopped longer than `hls.lingerSec` ago */
  findStream(streamId: string): LiveStream | undefined
  /**
   * Replaces all secrets except `srt.passphrase`, and reads the files of TLS again. Other options and connections stay.
   *
   * @throws {MillraceError} `CONFIG_INVALID`; nothing has changed then
   */
  reload(options: ServerOptions): void
  /** In a cluster: sends the encoders to other nodes, one each 2 s, and takes no more. Viewers are served until `close`. */
  drain(): Promise<void>
  /** Ends all streams, or hands them over, and closes all ports. Settles when no timer, socket or memory is left. */
  close(options?: CloseOptions): Promise<void>
}

/** A stream of a server, whose calls start, change and stop it. */
export interface LiveStream
  extends
    EventEmitter<StreamEvents>,
    Pick<PlayableStream, 'status' | 'live' | 'onAir' | 'stateSinceMs' | 'stopsAtMs'> {
  readonly id: string
  /** Playlists, segments and parts; none once the server has forgotten the stream. */
  readonly files: StreamFiles
  /** State, figures and warnings now; `Server.status` adds what the server knows of the stream. */
  report(): StreamReport
}
