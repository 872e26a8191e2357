/**
 * Processes of a cluster, as operators start them: nodes, edges, Redis with a replica and Sentinels; ffmpeg in a loop.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { freePorts } from '../../support/free-port.ts'
import { start, type Program } from '../../support/process.ts'
import { ask, startRedis, startSentinel, type RedisServer } from './redis.ts'
import { until } from '../../support/until.ts'

const CLI = 'dist/cli.js'
const CLIP = 'fixtures/demo.mpegts'

/** Pause of a loop around an encoder that has ended. */
const ENCODER_PAUSE_MS = 300

interface Test {
  teardown(close: () => unknown): unknown
}

export interface RegistryProcesses {
  /** For `REDIS_URL`. */
  readonly url: string
  readonly master: RedisServer
  readonly replica: RedisServer
  readonly sentinels: readonly RedisServer[]
}

/** Starts Redis with a replica, watched by three Sentinels. */
export async function startRegistry(t: Test): Promise<RegistryProcesses> {
  const master = await startRedis(t)
  const replica = await startRedis(t, { args: ['--replicaof', '127.0.0.1', String(master.port)] })
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, () => startSentinel(t, master.port, { quorum: 2 })),
  )
  await until('the Sentinels know each other and the replica', async () => {
    const replies = await Promise.all(sentinels.map(({ port }) => ask(port, 'SENTINEL MASTERS')))
    return (
      replies.every((reply) => /num-other-sentinels\r\n\$1\r\n2/.test(reply)) &&
      replies.every((reply) => /num-slaves\r\n\$1\r\n1/.test(reply))
    )
  })
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+sentinel://${hosts}/main`, master, replica, sentinels }
}

export interface NodeProcess {
  readonly url: string
  readonly srtPort: number
  /** The latest one. */
  readonly program: Program
  /** Its id in the registry; empty until it has reached it. */
  id(): string
  /** Starts the node again after its end, with the same settings. */
  restart(): Promise<void>
}

/** Secrets that all nodes of a cluster share, as settings. */
export function createSecrets() {
  const secret = () => randomBytes(32).toString('hex')
  return { HMAC_SECRET: secret(), JWT_SECRET: secret(), CLUSTER_SECRET: secret() }
}

/**
 * Starts nodes on free ports, and waits until they listen.
 *
 * @param environments  of all nodes, or of each
 */
export async function startNodes(
  t: Test,
  command: 'serve' | 'edge',
  env: Readonly<Record<string, string>> | readonly Readonly<Record<string, string>>[],
  count = 3,
): Promise<NodeProcess[]> {
  const ports = await freePorts(2 * count)
  const nodes = Array.from({ length: count }, (_, index): NodeProcess => {
    const [httpPort, srtPort] = [ports[index]!, ports[index + count]!]
    const run = () =>
      start(t, process.execPath, [CLI, command], {
        env: {
          ...(Array.isArray(env) ? env[index] : env),
          ...{ HTTP_PORT: String(httpPort), SRT_PORT: String(srtPort) },
          ...{ HTTP_HOST: '127.0.0.1', SRT_HOST: '127.0.0.1', PUBLIC_HOST: '127.0.0.1' },
        },
      })
    let program = run()
    return {
      ...{ url: `http://127.0.0.1:${httpPort}`, srtPort },
      get program() {
        return program
      },
      id: () => /"node":"([0-9a-f]{12})"/.exec(program.output())?.[1] ?? '',
      restart: async () => {
        program = run()
        await listens(program)
      },
    }
  })
  for (const { program } of nodes) await listens(program)
  return nodes
}

async function listens(program: Program): Promise<void> {
  await until('listening', () => program.output().includes('"msg":"listening"'))
}

/** Publishes the demo clip with ffmpeg; whenever it ends, again, at the next node. */
export function encodeInLoop(t: Test, nodes: readonly NodeProcess[], srtUrl: string): void {
  let isOver = false
  let turn = 0
  const call = () => {
    if (isOver) return
    const port = nodes[turn++ % nodes.length]!.srtPort
    const input = ['-re', '-stream_loop', '-1', '-i', CLIP, '-c', 'copy']
    const url = srtUrl.replace(/:\d+\?/, `:${port}?`)
    const { child } = start(t, 'ffmpeg', ['-v', 'error', ...input, '-f', 'mpegts', url])
    // Teardowns run in reverse order: this one before the kill of the encoder, which would start another.
    t.teardown(() => (isOver = true))
    child.once('exit', () => setTimeout(call, ENCODER_PAUSE_MS))
  }
  call()
}
