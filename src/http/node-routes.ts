/**
 * Calls that nodes make to each other: `POST /node/{call}` with a JSON body. Requests that no node has signed find no
 * route.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { MillraceError } from '../errors.ts'
import { BodyReader } from './body-reader.ts'
import { checkSignedBody, nodeCallOf } from './node-access.ts'
import { parseJson } from './signature-hook.ts'

/** Handlers by the name of the call. Each gets the body, which another node has signed, and returns the answer. */
export type NodeRoutes = Readonly<Record<string, (body: unknown) => Promise<object>>>

export interface NodeRoutesOptions {
  readonly routes: NodeRoutes
}

export const nodeRoutes: FastifyPluginAsync<NodeRoutesOptions> = async (app, { routes }) => {
  const bodies = new BodyReader()
  app.addHook('onRequest', async (request) => {
    if (nodeCallOf(request) === undefined) throw new MillraceError('ROUTE_NOT_FOUND')
  })
  app.addHook('preParsing', async (request, _reply, payload) => {
    const { headers } = request
    const bytes = await bodies.read(payload, headers['content-length'])
    checkSignedBody(request, bytes)
    request.body = parseJson(bytes, headers['content-type'])
    return payload
  })
  for (const [name, handle] of Object.entries(routes)) {
    app.post(`/${name}`, ({ body }) => handle(body))
  }
}
