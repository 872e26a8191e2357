/**
 * Streams of all HTTP/2 connections, admitted up to a limit.
 *
 * Nothing is closed in a callback of a stream, which nghttp2 may call while it reads: Node 20 writes at once, and if that
 * fails, lets nghttp2 read within its read (`ConsumeHTTP2Data`), which aborts the process.
 *
 * @module
 */
import { constants, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import { limitPieces } from './body-pieces.ts'
import { ConnectionTable, type ConnectionLimits } from './connection-table.ts'
import { hasSentRequest } from './guarded-http2-response.ts'
import type { GuardedSession } from './guarded-session.ts'
import { takeListener } from './node-insides.ts'
import { sourceOf } from './source-address.ts'

/** Settings and limits of each connection, for `http2.createSecureServer`. */
export const HTTP2_OPTIONS = {
  settings: {
    // The minimum that RFC 9113 section 6.5.2 recommends.
    maxConcurrentStreams: 100,
    // As for HTTP/1.1 (`maxHeaderSize`): a request holds its head until it is answered.
    maxHeaderListSize: 8192,
    enablePush: false,
    // What a client may send of a body that nobody reads. Bodies of the API are smaller, or come in several round trips.
    initialWindowSize: 4 * 1024,
  },
  // Frames that are not valid, and streams beyond the limit, after which nghttp2 ends the connection.
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
}

interface StreamHandlers {
  /** @returns undefined for a connection that has ended, or is about to be cut */
  readonly sessionOf: (stream: ServerHttp2Stream) => GuardedSession | undefined
  /** Called for each stream that ends with an error code, also if it was refused. */
  readonly onReset: (session: GuardedSession) => void
  /** Called when the client has sent the body of a request, read or not. */
  readonly onRequest: (session: GuardedSession) => void
  /** Called for bodies in too many pieces. */
  readonly onTooManyPieces: (session: GuardedSession) => void
  readonly onRefused: () => void
  readonly nowMs: () => number
}

/**
 * Puts itself between the server and its streams.
 *
 * @param limits  as for connections: an HTTP/1.1 connection has one open request
 */
export function guardStreams(
  server: Http2SecureServer,
  limits: ConnectionLimits,
  { sessionOf, onReset, onRequest, onTooManyPieces, onRefused, nowMs }: StreamHandlers,
): void {
  const table = new ConnectionTable<ServerHttp2Stream>(limits)
  const serve = takeListener(server, 'stream')
  server.on('stream', (stream: ServerHttp2Stream, ...head: unknown[]) => {
    // Node adds a listener only when the request begins.
    stream.on('error', () => undefined)
    const session = sessionOf(stream)
    if (session === undefined) return
    if (stream.destroyed) {
      onReset(session)
      return
    }
    stream.once('close', () => {
      table.remove(stream)
      session.remove(stream)
      // A client may reset with any code.
      if (stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR) onReset(session)
    })
    const admission = table.admit(stream, sourceOf(session.socket.remoteAddress), nowMs())
    if (!admission.admitted) {
      onRefused()
      closeLater(stream, constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    if (admission.displaced !== undefined) closeLater(admission.displaced, constants.NGHTTP2_CANCEL)
    if (stream.endAfterHeaders) table.markBusy(stream)
    else {
      // A stream whose request is incomplete may be displaced.
      limitPieces(stream, session.pieces, {
        onEnd: () => {
          table.markBusy(stream)
          onRequest(session)
        },
        onTooMany: () => onTooManyPieces(session),
      })
      stream.once('finish', () => {
        // RFC 9113 section 8.1: the response is complete, the rest of the body is not wanted.
        if (!hasSentRequest(stream)) closeLater(stream, constants.NGHTTP2_NO_ERROR)
      })
    }
    session.add(stream, () => serve.call(server, stream, ...head))
  })
}

/** Closes a stream when nghttp2 is not reading. */
function closeLater(stream: ServerHttp2Stream, code: number): void {
  setImmediate(() => {
    if (!stream.destroyed && !stream.closed) stream.close(code)
  })
}
