/**
 * A cluster of real processes with a live stream: three ingest nodes, three edges, Redis with a replica and three
 * Sentinels, ffmpeg in a loop, and nginx in front of the edges.
 *
 * @module
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '../../src/client/index.ts'
import { linkTo, type RedisLink } from '../../test/peers/support/cluster.ts'
import { freePort } from '../../test/support/free-port.ts'
import {
  createSecrets,
  encodeInLoop,
  startNodes,
  startRegistry,
  type NodeProcess,
  type RegistryProcesses,
} from '../../test/peers/support/node-processes.ts'
import { startRedis } from '../../test/peers/support/redis.ts'
import { start } from '../../test/support/process.ts'
import { until } from '../../test/support/until.ts'

const STREAM = 'studio'
const READY_MS = 60_000
const STATUS_MS = 1000

interface Test {
  teardown(close: () => unknown): unknown
}

export interface Cluster {
  readonly ingest: readonly NodeProcess[]
  readonly edges: readonly NodeProcess[]
  /** In front of the edges. */
  readonly nginxUrl: string
  /** Undefined with `isLinked`. */
  readonly registry: RegistryProcesses | undefined
  /** Ways of the ingest nodes to Redis, with `isLinked`. */
  readonly links: readonly RedisLink[]
  /** Node that owns the stream, as the registry has it. */
  owner(): Promise<NodeProcess>
  status(): Promise<StreamStatus>
}

export interface StreamStatus {
  readonly status: string
  /** Id of the owner. */
  readonly node?: string
}

export interface ClusterOptions {
  /** Whether Redis is one server that each ingest node reaches by a way of its own, without Sentinels. */
  readonly isLinked: boolean
  /** Settings of all nodes. */
  readonly env?: Readonly<Record<string, string>>
}

export async function startCluster(
  t: Test,
  { isLinked, env: own = {} }: ClusterOptions,
): Promise<Cluster> {
  const secrets = createSecrets()
  const registry = isLinked ? undefined : await startRegistry(t)
  const alone = isLinked ? await startRedis(t) : undefined
  const links = alone === undefined ? [] : await Promise.all([0, 1, 2].map(() => linkTo(t, alone)))
  const env = {
    ...secrets,
    REDIS_URL: registry?.url ?? alone!.url,
    ...own,
  }
  const linked = links.map(({ url }) => ({ ...env, REDIS_URL: url }))
  const ingest = await startNodes(t, 'serve', isLinked ? linked : env)
  const edges = await startNodes(t, 'edge', env)
  const nginxUrl = await startNginx(t, edges)
  const clients = [...ingest, ...edges].map(
    ({ url }) => new Client({ url, secret: secrets.HMAC_SECRET }),
  )
  const started = await until('the registry answers', () =>
    clients[0]!.call('start-stream', { stream_id: STREAM }).catch(() => undefined),
  )
  encodeInLoop(t, ingest, started.srt_url)
  const playlist = `/video/${STREAM}/playlist.m3u8`
  for (const { url } of [...edges, { url: nginxUrl }]) {
    const isLive = async () => (await fetch(url + playlist).catch(() => undefined))?.status === 200
    await until('a live stream', isLive, { timeoutMs: READY_MS, everyMs: 200 })
  }
  const status = () =>
    // Those that are gone refuse, and those that stand still never answer.
    Promise.any(
      clients.map(async (client) => {
        const signal = AbortSignal.timeout(STATUS_MS)
        const answer: unknown = await client.call('status', { stream_id: STREAM }, { signal })
        return answer as StreamStatus
      }),
    ).catch((): StreamStatus => ({ status: 'UNKNOWN' }))
  return {
    ingest,
    edges,
    nginxUrl,
    registry,
    links,
    owner: () =>
      until('an owner', async () => {
        const { node } = await status()
        return ingest.find(({ id }) => id() === node)
      }),
    status,
  }
}

/** As docs/cluster.md has it. */
async function startNginx(t: Test, edges: readonly NodeProcess[]): Promise<string> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const servers = edges.map(({ url }) => `server ${new URL(url).host} max_fails=1 fail_timeout=2s;`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off;
pid ${folder}/pid;
error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  access_log off;
  upstream edges { ${servers.join(' ')} keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://edges;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 1s;
      proxy_read_timeout 15s;
      proxy_next_upstream error timeout http_502 http_503;
    }
  }
}
`,
  )
  start(t, 'nginx', ['-p', folder, '-c', 'nginx.conf'])
  return `http://127.0.0.1:${port}`
}
