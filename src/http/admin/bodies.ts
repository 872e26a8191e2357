/**
 * Bodies of the calls of the dashboard, which are JSON.
 *
 * @module
 */
import type { FastifyInstance } from 'fastify'
import { BodyReader } from '../body-reader.ts'
import { checkSignedBody } from '../node-access.ts'
import { parseJson } from '../signature-hook.ts'

/** Reads the bodies of all POST routes of `app`, after its `onRequest` hooks: a client that they refuse costs no parsing. */
export function readBodies(app: FastifyInstance, maxBytes: number): void {
  const bodies = new BodyReader(maxBytes)
  // The root has no parser: it passes this value on.
  app.addHook('preParsing', async (request, _reply, payload) => {
    if (request.method !== 'POST') return payload
    const { headers } = request
    const bytes = await bodies.read(payload, headers['content-length'])
    checkSignedBody(request, bytes)
    request.body = parseJson(bytes, headers['content-type'])
    return payload
  })
}
