/**
 * HTTP application of an edge: playback from its own memory, everything else passed on to other nodes. The way of a playlist
 * to a viewer: see `edge.ts`.
 *
 * @module
 */
import type { FastifyInstance } from 'fastify'
import type { PlaybackTokens } from '../../auth/playback-token.ts'
import type { Clock } from '../../timing/clock.ts'
import type { NodeCalls } from '../../auth/node-calls.ts'
import { isStreamId } from '../../auth/stream-id.ts'
import { closeAfterResponses, createApp, type ApplicationOptions } from '../../http/create-app.ts'
import { health } from '../../http/health.ts'
import { trustOf } from '../../http/client-address.ts'
import { verifyNodeCalls } from '../../http/node-access.ts'
import type { OnSent } from '../../playback/handler.ts'
import { PlaybackRoutes } from '../../playback/routes.ts'
import type { Edge } from './edge.ts'
import type { EdgeStream } from './edge-streams.ts'
import type { IngestNodes } from './ingest-nodes.ts'
import type { NodeClient } from './node-client.ts'
import { createRelay, relay, type Pass } from './relay.ts'
import type { OwnerLookup } from './stream-origin.ts'

interface EdgeAppOptions extends ApplicationOptions {
  readonly edge: Edge
  /** Passes on requests; that of a worker does not sign them. */
  readonly client: NodeClient
  readonly owners: OwnerLookup
  readonly ingestNodes: IngestNodes
  /** Default: `client`, which knows the nodes that it has asked of late. */
  readonly origin?: { readonly isAway: boolean } | undefined
  /** Whether the ingest nodes are this machine's own service, over Unix sockets that only it can open. */
  readonly isLocal: boolean
  /** Verifies the tokens of viewers; undefined: only public streams are played. */
  readonly playbackTokens?: PlaybackTokens | undefined
  /** Verifies the calls of other nodes; default: they are refused. A worker passes them on. */
  readonly nodeCalls?: NodeCalls | undefined
  readonly clock?: Clock | undefined
  /** See `PlaybackOptions`. */
  readonly onSent?: (stream: EdgeStream, name: string, sizeBytes: number) => void
}

/**
 * A worker, whose ingest node is local, is the service to its clients. Any other edge passes on player pages; the API and
 * the dashboard only with a signature, since a request to them would otherwise come from the edge's address, which the
 * node may trust more than the client's.
 *
 * @returns an application that does not listen yet
 */
export function buildEdgeApp(options: EdgeAppOptions): FastifyInstance {
  const { edge, ingestNodes, isLocal, playbackTokens: tokens } = options
  const onSent = options.onSent as OnSent | undefined
  const routes = new PlaybackRoutes({
    open: { source: edge.open, onSent },
    guarded: tokens && { source: edge.protected, tokens, onSent },
    nodeCalls: options.nodeCalls,
    // The ingest process knows which streams it owns.
    passesCalls: isLocal,
    isKnown: edge.isKnown,
    trust: trustOf(options.trustProxy, options.trustPeers),
    clock: options.clock,
    logger: options.logger,
  })
  const app = createApp({ ...options, before: routes.handle })
  app.addHook('preClose', async () => routes.close())
  const pass: Pass = (request) => ingestNodes.pass(request)
  verifyNodeCalls(app, options.nodeCalls)
  if (isLocal) passFiles(app, options, pass)
  if (isLocal) void app.register(relay, { prefix: '/', pass })
  else relayPages(app, options, pass)
  closeAfterResponses(app, options.guard)
  return app
}

/** Passes on what an edge elsewhere may pass on, and tells of its health. */
function relayPages(app: FastifyInstance, options: EdgeAppOptions, pass: Pass): void {
  const { client, edge, origin = client } = options
  const listUnreadyReasons = () => (origin.isAway ? ['origin-away'] : [])
  void app.register(health, { prefix: '/health', listUnreadyReasons })
  const passState =
    (streamId: string): Pass =>
    async (request) => {
      const owner = isStreamId(streamId)
        ? await edge.findOwner(streamId).catch(() => undefined)
        : undefined
      return owner === undefined ? pass(request) : client.pass(owner, request)
    }
  for (const prefix of ['/watch', '/t/:token/watch']) {
    void app.register(relay, { prefix, pass, passState })
  }
  if (client.signs) {
    for (const prefix of ['/api', '/admin']) void app.register(relay, { prefix, pass })
  }
}

/** Passes on files that other nodes ask for, as they have signed it, to the ingest process that has the stream. */
function passFiles(
  app: FastifyInstance,
  { client, owners }: Pick<EdgeAppOptions, 'client' | 'owners'>,
  pass: Pass,
): void {
  const send = createRelay(app)
  for (const url of ['/video/:stream_id/:file', '/t/:token/video/:stream_id/:file']) {
    app.get<{ Params: { stream_id: string } }>(url, (request, reply) =>
      send(request, reply, async (passed) => {
        const owner = await owners.find(request.params.stream_id)
        const file = { ...passed, isFile: true }
        return owner === undefined ? pass(file) : client.pass(owner.url, file)
      }),
    )
  }
}
