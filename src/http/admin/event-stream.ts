/**
 * Server-sent events on a reply, over HTTP/1.1 and HTTP/2.
 *
 * @module
 */
import type { Http2ServerResponse } from 'node:http2'
import type { Writable } from 'node:stream'
import type { FastifyReply } from 'fastify'

/** Time after which a browser connects again. */
const RETRY_MS = 2000

/**
 * Sends the head of the reply, which stays open.
 *
 * @returns undefined if the client has left
 */
export function openEventStream(reply: FastifyReply): Writable | undefined {
  const raw = reply.raw as FastifyReply['raw'] | Http2ServerResponse
  reply.hijack()
  // The guard's HTTP/2 reply holds what is written until it ends. It has no stream any more when that has closed.
  const body: Writable | undefined = 'stream' in raw ? raw.stream : raw
  if (body === undefined || body.destroyed) return undefined
  const headers = {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    // Keeps nginx from buffering events.
    'x-accel-buffering': 'no',
  }
  raw.writeHead(200, headers)
  body.on('error', () => body.destroy())
  body.write(`retry: ${RETRY_MS}\n\n`)
  return body
}
