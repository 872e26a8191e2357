/**
 * Connection of a request, as key of what is remembered for it, and the exchange on it.
 *
 * @module
 */
import type { EventEmitter } from 'node:events'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sourceOf } from './guard/source-address.ts'
import { nodeCallOf } from './node-access.ts'
import type { Exchange } from './waiting-requests.ts'

/** The TCP connection; of HTTP/2 requests the session, since each of them has a `socket` of its own. */
export function connectionOf(
  raw: Pick<FastifyRequest['raw'], 'httpVersionMajor' | 'socket'>,
): object {
  if (raw.httpVersionMajor < 2) return raw.socket
  const { stream } = raw as unknown as Http2ServerRequest
  return stream.session ?? stream
}

export function exchangeOf(reply: FastifyReply): Exchange {
  const emitter = emitterOf(reply)
  return {
    connection: connectionOf(reply.raw.req),
    source: nodeCallOf(reply.request) ? undefined : sourceOf(reply.request.socket.remoteAddress),
    get hasLeft() {
      return emitter.destroyed
    },
    onceLeft: (act) => void emitter.once('close', act),
    fail: (error) => void reply.send(error),
  }
}

/** Emitter of `close` when the kernel has the whole reply, or when connection or stream has closed. */
export function emitterOf({ raw }: FastifyReply): EventEmitter & { readonly destroyed: boolean } {
  if (raw.req.httpVersionMajor < 2) return raw
  // A reply of HTTP/2 to HEAD does not emit it if the client leaves before the reply; its stream does.
  return (raw as unknown as Http2ServerResponse).stream
}
