/**
 * Calls that nodes make to each other: `POST /node/{call}` with a JSON body. Requests that no node has signed as its own
 * find no route.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { MillraceError } from '../errors.ts'
import { parseJson, readBodies } from '../http/body-reader.ts'
import { nodeCallOf } from '../http/node-access.ts'

/** Handlers by the name of the call. Each gets the body, which another node has signed, and returns the answer. */
export type NodeRoutes = Readonly<Record<string, (body: unknown) => Promise<object>>>

interface NodeRoutesOptions {
  readonly routes: NodeRoutes
}

export const nodeRoutes: FastifyPluginAsync<NodeRoutesOptions> = async (app, { routes }) => {
  app.addHook('onRequest', async (request) => {
    const call = nodeCallOf(request.raw)
    const isOwn = call !== undefined && call.client === undefined
    if (!isOwn) throw new MillraceError('ROUTE_NOT_FOUND')
  })
  readBodies(app, parseJson)
  for (const [name, handle] of Object.entries(routes)) {
    app.post(`/${name}`, ({ body }) => handle(body))
  }
}
