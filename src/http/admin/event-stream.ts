/**
 * Server-sent events on a reply, over HTTP/1.1 and HTTP/2.
 *
 * @module
 */
import type { Writable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { openBody } from '../open-body.ts'

/** Time after which a browser connects again. */
const RETRY_MS = 2000

/**
 * Sends the head of the reply, which stays open.
 *
 * @returns undefined if the client has left
 */
export function openEventStream(reply: FastifyReply): Writable | undefined {
  const body = openBody(reply, 200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    // Keeps nginx from buffering events.
    'x-accel-buffering': 'no',
  })
  body?.write(`retry: ${RETRY_MS}\n\n`)
  return body
}
