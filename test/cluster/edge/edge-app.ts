/**
 * An edge over real HTTP on a free port of the loopback.
 *
 * @module
 */
import { uncachedMemoryBeside } from '../../../src/playback/uncached-memory.ts'
import type { BlockList } from 'node:net'
import { pino } from 'pino'
import type { Test } from 'tap'
import { PlaybackTokens } from '../../../src/auth/playback-token.ts'
import { systemClock, type Clock } from '../../../src/timing/clock.ts'
import type { NodeCalls } from '../../../src/auth/node-calls.ts'
import { buildEdgeApp } from '../../../src/cluster/edge/edge-app.ts'
import { Edge } from '../../../src/cluster/edge/edge.ts'
import { IngestNodes } from '../../../src/cluster/edge/ingest-nodes.ts'
import { NodeClient } from '../../../src/cluster/edge/node-client.ts'
import { fixedOwner, type OwnerLookup } from '../../../src/cluster/edge/stream-origin.ts'
import { HttpGuard } from '../../../src/http/guard/http-guard.ts'

export interface EdgeApp {
  readonly url: string
  readonly port: number
  readonly edge: Edge
}

export interface EdgeAppOptions {
  readonly playbackSecret?: string
  readonly clock?: Clock
  /** See `StreamOrigin`. */
  readonly silentMs?: number
  readonly trustProxy?: BlockList
  /** Signs and verifies calls between nodes; default: none are signed. */
  readonly nodeCalls?: NodeCalls
  /** Default: `edgeOf` owns all streams. */
  readonly owners?: OwnerLookup
  /** Default: `edgeOf`. */
  readonly listIngestNodes?: () => Promise<readonly string[]>
}

/** Starts an edge; it ends with the test. */
export async function startEdge(
  t: Test,
  edgeOf: string,
  { playbackSecret, clock, silentMs, trustProxy, nodeCalls, ...cluster }: EdgeAppOptions = {},
): Promise<EdgeApp> {
  const secrets = playbackSecret === undefined ? [] : [playbackSecret]
  const socketPath = /^unix:(.+)$/.exec(edgeOf)?.[1]
  const url = socketPath === undefined ? edgeOf : 'http://origin'
  const { owners = fixedOwner(url), listIngestNodes = async () => [url] } = cluster
  const isLocal = socketPath !== undefined
  const client = new NodeClient({
    ...(isLocal && { socketPathOf: () => socketPath }),
    calls: isLocal ? undefined : nodeCalls,
  })
  const edge = new Edge({
    client,
    owners,
    maxBytes: 100_000_000,
    readPlaybackSecrets: () => secrets,
    ...(clock && { clock }),
    silentMs,
  })
  const logger = pino({ level: 'silent' })
  const guard = new HttpGuard({
    limits: { maxConnections: 1000, maxBufferedMib: 64 },
    uncachedMemory: uncachedMemoryBeside((id) => edge.memory.findStream(id)),
    clock: systemClock,
    logger,
  })
  const playbackTokens = secrets.length > 0 ? new PlaybackTokens(() => secrets) : undefined
  const ingestNodes = new IngestNodes({ client, list: listIngestNodes, clock })
  const app = buildEdgeApp({
    ...{
      edge,
      client,
      owners,
      ingestNodes,
      isLocal,
      playbackTokens,
      trustProxy,
      nodeCalls,
      clock,
      guard,
      logger,
    },
  })
  const own = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await app.close()
    edge.close()
    await client.close()
  })
  return { url: own, port: Number(new URL(own).port), edge }
}
