/**
 * Nodes of a cluster in one process, over a real Redis that ends with the test.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { issueStreamKey, STREAM_KEY_LIFETIME_SEC } from '../../../src/auth/stream-key.ts'
import { Redis } from '../../../src/cluster/registry/redis.ts'
import { Registry } from '../../../src/cluster/registry/registry.ts'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'
import type { ServerOptions } from '../../../src/index.ts'
import type { Server } from '../../../src/service/server.ts'
import { publishDemo, type TestEncoder } from '../../support/demo-encoder.ts'
import { createEdgeServer, type EdgeServer } from '../../../src/cluster/edge/edge-server.ts'
import { SEQUENCE_CLOCK } from '../../../src/stream/sequence-starts.ts'
import { ask, startRedis, type RedisServer } from './redis.ts'
import { startService } from '../../support/service.ts'
import { StreamJudge } from '../../support/stream-judge.ts'
import { until } from '../../support/until.ts'

interface Test {
  teardown(close: () => unknown): unknown
}

export interface TestCluster {
  readonly redis: RedisServer
  readonly hmacSecret: string
  readonly clusterSecret: string
  readonly registry: Registry
  startNode(options?: Partial<ServerOptions>): Promise<Server>
  startEdge(): Promise<EdgeServer>
  /** Starts a stream in the registry. @returns a stream key */
  startStream(streamId: string, options?: object): Promise<string>
}

export async function startCluster(
  t: Test,
  options: Partial<ServerOptions> = {},
): Promise<TestCluster> {
  const redis = await startRedis(t)
  const secrets = {
    hmacSecret: randomBytes(32).toString('hex'),
    jwtSecret: randomBytes(32).toString('hex'),
    clusterSecret: randomBytes(32).toString('hex'),
    redisUrl: redis.url,
  }
  const connection = new Redis({ url: redis.url })
  t.teardown(() => connection.close())
  connection.connect()
  await until('a connection', () => connection.isReady)
  const registry = new Registry({ redis: connection, sequenceClock: SEQUENCE_CLOCK })
  return {
    redis,
    hmacSecret: secrets.hmacSecret,
    clusterSecret: secrets.clusterSecret,
    registry,
    startNode: async (own) => {
      const hls = { segmentSec: 1, ...options.hls }
      const { server } = await startService(t, { ...options, hls, ...secrets, ...own })
      await until('the node has its lease', async () => {
        const nodes = await registry.listNodes().catch(() => [])
        return nodes.some(({ url }) => url === (own?.nodeUrl ?? server.publicUrl))
      })
      return server
    },
    startEdge: async () => {
      const server = await createEdgeServer({
        ...{ logLevel: 'silent', public: { host: '127.0.0.1' }, ...secrets },
        http: { host: '127.0.0.1', port: 0 },
        playbackSecret: options.playbackSecret ?? '',
      })
      t.teardown(() => server.close())
      return server
    },
    startStream: async (streamId, options = {}) => {
      const now = new Date()
      const key = await issueStreamKey({ streamId, secret: secrets.jwtSecret, now })
      const keyExpiresAtMs = now.getTime() + STREAM_KEY_LIFETIME_SEC * 1000
      await until('the stream is started', () =>
        registry.start(streamId, { options: { ...options }, keyExpiresAtMs }).catch(() => false),
      )
      return key.streamKey
    },
  }
}

/** Kills a node. Its lease holds for as long as a busy machine takes to find that nobody listens there. */
export async function killNode({ registry, redis }: TestCluster, server: Server): Promise<void> {
  const nodes = await registry.listNodes()
  const killed = nodes.find(({ url }) => url === server.publicUrl)!
  await server.abandon()
  await ask(redis.port, `PEXPIRE mr:node:${killed.node} 60000`)
}

export interface RedisLink {
  readonly url: string
  /** Ends all connections and accepts none, until `mend`. */
  cut(): void
  mend(): void
}

/** Way of one node to Redis. */
export async function linkTo(t: Test, { port }: RedisServer): Promise<RedisLink> {
  const sockets = new Set<Socket>()
  let isCut = false
  const link = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => [near, far].forEach((each) => each.destroy()))
    }
    near.pipe(far).pipe(near)
  })
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  await once(link.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    cut()
    link.close()
  })
  const { port: own } = link.address() as AddressInfo
  return { url: `redis://127.0.0.1:${own}`, cut, mend: () => (isCut = false) }
}

/** Publishes the demo clip in real time; calls again for as long as it takes, with `retry`. */
export function encodeTo(t: Test, node: Server, streamKey: string, retry = false): TestEncoder {
  const url = `srt://127.0.0.1:${node.srtPort}?streamid=${streamKey}`
  return publishDemo(t, url, { retry, mayFail: true })
}

export interface TestViewer {
  /** What the judge has found, and numbers that had two URIs. */
  readonly complaints: string[]
  /** Versions of the playlist. */
  readonly texts: string[]
  /** Statuses of all replies but 200, in a row once. */
  readonly failures: number[]
  readonly last: ReturnType<typeof parseMediaPlaylist>
}

/**
 * Complaints about a stream that skips numbers, so that nothing of its window stays: its owner may have used numbers that
 * nobody else knows, since it stood still, was cut off, or was found dead only after its lease.
 */
export function complaintsButOfWindow({ complaints }: TestViewer): string[] {
  return complaints.filter((complaint) => !/^(WINDOW_TOO_SHORT|HOUSE_WINDOW)/.test(complaint))
}

/** Reads the playlist of a stream whenever it changes. */
export function watchStream(t: Test, port: () => number, streamId: string): TestViewer {
  const judge = new StreamJudge({
    // Segments of a node that is gone are gaps; its parts leave with it.
    except: [
      ...['SEGMENT_BECAME_GAP', 'HOUSE_KEPT', 'INDEPENDENT_MISSING'],
      ...['CODECS_MISSING', 'CHANNELS_MISSING'],
    ],
  })
  const [complaints, texts, failures]: [string[], string[], number[]] = [[], [], []]
  const uris = new Map<number, string>()
  const name = 'playlist.m3u8'
  const look = (text: string) => {
    if (text === texts.at(-1)) return
    texts.push(text)
    complaints.push(...judge.playlist(name, text))
    const { segments } = parseMediaPlaylist(text, `https://media.example/${name}`)
    for (const { sequence, uri } of segments) {
      // An open segment has parts alone.
      if (uri === undefined) continue
      const known = uris.get(sequence)
      if (known !== undefined && known !== uri) {
        complaints.push(`${sequence} was ${known} and is ${uri}`)
      }
      uris.set(sequence, uri)
    }
  }
  const over = new AbortController()
  const watch = async () => {
    while (!over.signal.aborted) {
      const url = `http://127.0.0.1:${port()}/video/${streamId}/${name}`
      const reply = await fetch(url).catch(() => undefined)
      const status = reply?.status ?? 0
      if (reply !== undefined && status === 200) look(await reply.text())
      else if (failures.at(-1) !== status) failures.push(status)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const done = watch()
  t.teardown(async () => {
    over.abort()
    await done
  })
  return {
    complaints,
    texts,
    failures,
    get last() {
      return parseMediaPlaylist(texts.at(-1) ?? '#EXTM3U', `https://media.example/${name}`)
    },
  }
}
