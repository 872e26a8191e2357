/**
 * Streams of all HTTP/2 connections: admitted up to a limit, their requests handled a few per turn.
 *
 * @module
 */
import { constants, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { limitPieces } from './body-pieces.ts'
import { ConnectionTable, type ConnectionLimits } from './connection-table.ts'
import { sourceOf } from './source-address.ts'
import type { TurnQueue } from '../turn-queue.ts'

/** Settings and limits of each connection, for `http2.createSecureServer`. */
export const HTTP2_OPTIONS = {
  settings: {
    // The minimum that RFC 9113 section 6.5.2 recommends.
    maxConcurrentStreams: 100,
    // As for HTTP/1.1 (`--max-http-header-size`).
    maxHeaderListSize: 16 * 1024,
    enablePush: false,
    // What a client may send of a body that nobody reads. Bodies of the API are smaller, or come in several round trips.
    initialWindowSize: 4 * 1024,
  },
  // Frames that are not valid, and streams beyond the limit, after which nghttp2 ends the connection.
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
}

interface StreamHandlers {
  /** Called for each stream that ends with an error code, also if it was refused. */
  readonly onReset: (socket: Socket) => void
  /** Called when the client has sent the body of a request, read or not. */
  readonly onRequest: (socket: Socket) => void
  /** Called for a body in too many pieces. */
  readonly onTooManyPieces: (socket: Socket) => void
  readonly onRefused: () => void
  readonly nowMs: () => number
}

type StreamListener = (stream: ServerHttp2Stream, ...head: unknown[]) => void

/**
 * Puts itself between the server and its streams.
 *
 * @param limits  as for connections: an HTTP/1.1 connection has one open request
 * @param turns  schedules streams that may begin their request
 */
export function guardStreams(
  server: Http2SecureServer,
  limits: ConnectionLimits,
  turns: TurnQueue,
  { onReset, onRequest, onTooManyPieces, onRefused, nowMs }: StreamHandlers,
): void {
  const table = new ConnectionTable<ServerHttp2Stream>(limits)
  const [serve] = server.listeners('stream') as [StreamListener]
  server.off('stream', serve).on('stream', (stream: ServerHttp2Stream, ...head: unknown[]) => {
    // Node adds a listener only when the request begins.
    stream.on('error', () => undefined)
    const socket = tcpSocketOf(stream.session?.socket)
    // The session has ended.
    if (socket === undefined) return
    if (stream.destroyed) {
      onReset(socket)
      return
    }
    stream.once('close', () => {
      table.remove(stream)
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) onReset(socket)
    })
    const admission = table.admit(stream, sourceOf(socket.remoteAddress), nowMs())
    if (!admission.admitted) {
      onRefused()
      closeLater(stream, constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    if (admission.displaced !== undefined) closeLater(admission.displaced, constants.NGHTTP2_CANCEL)
    if (stream.endAfterHeaders) table.markBusy(stream)
    else {
      // A stream whose request is incomplete may be displaced.
      limitPieces(stream, {
        onEnd: () => {
          table.markBusy(stream)
          onRequest(socket)
        },
        onTooMany: () => {
          // So that further frames of the same read do not reach JavaScript. CANCEL: see `closeLater`.
          stream.close(constants.NGHTTP2_CANCEL)
          stream.destroy()
          onTooManyPieces(socket)
        },
      })
      stream.once('finish', () => {
        // RFC 9113 section 8.1: the response is complete, the rest of the body is not wanted.
        if (!hasSentRequest(stream)) closeLater(stream, constants.NGHTTP2_NO_ERROR)
      })
    }
    const begin = () => {
      if (!stream.destroyed && !stream.closed) serve.call(server, stream, ...head)
    }
    if (turns.take()) begin()
    else turns.add(begin)
  })
}

/** Whether the client has sent its whole request, read or not. */
export function hasSentRequest(stream: ServerHttp2Stream): boolean {
  return stream.endAfterHeaders || stream.state.remoteClose === 1
}

/**
 * Closes a stream when no frames are being read: Node 20 writes at once with any code but CANCEL, and aborts if nghttp2 was
 * reading (`ConsumeHTTP2Data`).
 */
function closeLater(stream: ServerHttp2Stream, code: number): void {
  setImmediate(() => {
    if (!stream.destroyed && !stream.closed) stream.close(code)
  })
}

/** TCP socket below a TLS socket; Node has no public name for it. */
export function tcpSocketOf(socket: object | undefined): Socket | undefined {
  const { _parent: parent } = (socket ?? {}) as { _parent?: Socket | null }
  return parent ?? undefined
}
