/**
 * Reply whose body is sent as it comes, over HTTP/1.1 and HTTP/2.
 *
 * @module
 */
import type { Http2ServerResponse } from 'node:http2'
import type { Writable } from 'node:stream'
import type { FastifyReply } from 'fastify'

/**
 * Sends the head of the reply, which leaves Fastify.
 *
 * @returns undefined if the client has left
 */
export function openBody(
  reply: FastifyReply,
  status: number,
  headers: Readonly<Record<string, string | string[]>>,
): Writable | undefined {
  const raw = reply.raw as FastifyReply['raw'] | Http2ServerResponse
  reply.hijack()
  // The guard's HTTP/2 reply holds what is written until it ends. It has no stream any more when that has closed.
  const body: Writable | undefined = 'stream' in raw ? raw.stream : raw
  if (body === undefined || body.destroyed) return undefined
  raw.writeHead(status, headers)
  body.on('error', () => body.destroy())
  return body
}
