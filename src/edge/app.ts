/**
 * HTTP application of an edge: playback from its own memory, everything else passed on to other nodes.
 *
 * @module
 */
import type { FastifyInstance } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import type { Clock } from '../clock.ts'
import type { NodeCalls } from '../cluster/node-calls.ts'
import { isStreamId } from '../contract/schema.ts'
import { closeAfterReplies, createApp, type ApplicationOptions } from '../http/create-app.ts'
import { limitGuesses } from '../http/guesses.ts'
import { health } from '../http/health.ts'
import { nodeCallOf, verifyNodeCalls } from '../http/node-access.ts'
import { playback, type OnSent } from '../http/playback.ts'
import type { Edge } from './edge.ts'
import type { EdgeStream } from './edge-streams.ts'
import type { IngestNodes } from './ingest-nodes.ts'
import type { NodeClient } from './node-client.ts'
import { createRelay, relay, type Pass } from './relay.ts'

export interface EdgeAppOptions extends ApplicationOptions {
  readonly edge: Edge
  readonly client: NodeClient
  readonly ingestNodes: IngestNodes
  /** Whether the ingest node is this machine's own service, over a Unix socket that only it can open. */
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
  const { edge, ingestNodes, isLocal, playbackTokens: tokens, onSent } = options
  const app = createApp(options)
  const pass: Pass = (request) => ingestNodes.pass(request)
  verifyNodeCalls(app, options.nodeCalls)
  if (isLocal) passNodeCalls(app, pass)
  const sent = onSent && { onSent: onSent as OnSent }
  void app.register(async (limited) => {
    limitGuesses(limited, edge.isKnown, options.clock)
    const open = { prefix: '/video', source: edge.open, beforeRouter: true }
    void limited.register(playback, { ...open, repeated: options.guard.repeated, ...sent })
    if (tokens === undefined) return
    const guarded = { prefix: '/t/:token/video', source: edge.protected, tokens }
    void limited.register(playback, { ...guarded, ...sent })
  })
  if (isLocal) void app.register(relay, { prefix: '/', pass })
  else relayPages(app, options, pass)
  closeAfterReplies(app, options.guard)
  return app
}

/** Passes on what an edge elsewhere may pass on, and tells of its health. */
function relayPages(app: FastifyInstance, { client, edge }: EdgeAppOptions, pass: Pass): void {
  const listUnreadyReasons = () => (client.isAway ? ['origin-away'] : [])
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

/** Passes on files that other nodes ask for, as they have signed it: the ingest process knows which streams it owns. */
function passNodeCalls(app: FastifyInstance, pass: Pass): void {
  const send = createRelay(app)
  app.addHook('preHandler', async (request, reply) => {
    const isFile = 'file' in (request.params as object)
    if (!isFile || nodeCallOf(request) === undefined) return
    await send(request, reply, (passed) => pass({ ...passed, isFile }))
  })
}
