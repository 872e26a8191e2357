/**
 * Supervisor: one or several ingest processes and some workers, which it starts, replaces and stops. It carries no media; it
 * accepts the connections to `HTTP_PORT` and hands them to the workers in turn. Several ingest processes share `SRT_PORT` and
 * are nodes of a cluster, whose registry the supervisor has.
 *
 *     encoders ──► ingest process × n ◄── Unix sockets ── worker × n ◄── viewers
 *                          └──── IPC: registry ────────────┘
 *
 * @module
 */
import { fork, type ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { MIN_ARCHIVE_MIB, MIN_CACHE_MIB, type Config } from '../../config/schema.ts'
import { systemClock } from '../../timing/clock.ts'
import { MillraceError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { DRAIN_MS } from '../../service/service-process.ts'
import { Child, type Exit } from './child.ts'
import { INGEST_COMMAND, WORKER_COMMAND, type Order } from './messages.ts'
import { MAX_DEATHS, ReplacementPolicy, type Death } from './replacement-policy.ts'
import { RegistryHost } from './registry-host.ts'
import {
  createSocketPath,
  nameOfIngest,
  removeSocketDirectory,
  socketBeside,
} from './socket-directory.ts'

/** Time limits for the end of the ingest processes, drain included, and then of the workers: 5 s together. */
const INGEST_LIMIT_MS = 3700
const WORKER_LIMIT_MS = 1200

/** Further time in which a node of a cluster leaves its streams to others: Redis may be slow. */
const HAND_OVER_LIMIT_MS = 2000

/** Time limit for the ports of an ingest process that is abandoned. */
const ABANDON_LIMIT_MS = 400

interface SupervisorOptions {
  /** Path of the program. */
  readonly program: string
  readonly config: Config
  readonly logger: Logger
}

/** A place that one child process after the other takes. */
interface Post {
  readonly name: string
  readonly isSecondary: boolean
  readonly socketPath: string
  /** Settings of its processes, of those of the service. */
  readonly configOf: (config: Config) => Config
  readonly spawn: () => ChildProcess
  child: Child | undefined
}

/** Calling order: `start`, then `reload`; `stop`, `abandon` or `kill` at any time. */
export class Supervisor {
  /** Rejects when children die too often; the others are to be abandoned. */
  readonly failed: Promise<never>
  readonly #logger: Logger
  readonly #socketPath = createSocketPath()
  readonly #ingest: readonly Post[]
  readonly #workers: readonly Post[]
  readonly #policy = new ReplacementPolicy()
  /** Present with several ingest processes. */
  readonly #registry: RegistryHost | undefined
  readonly #clusterSecret = randomBytes(32).toString('hex')
  /** For children that start from now on. */
  #config: Config
  #isStarted = false
  #isStopping = false
  #fail!: (error: Error) => void

  constructor({ program, config, logger }: SupervisorOptions) {
    const { ingest, maxStreams } = config
    this.#config = this.#complete(config)
    this.#logger = logger
    this.#registry =
      ingest.workers === 1 ? undefined : new RegistryHost({ maxStreams, clock: systemClock })
    this.failed = new Promise((_resolve, reject) => (this.#fail = reject))
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: program, args: [WORKER_COMMAND], serialization: 'advanced' })
    this.#ingest = Array.from({ length: ingest.workers }, (_, index) => {
      const name = nameOfIngest(index + 1)
      return {
        name: ingest.workers === 1 ? 'ingest' : name,
        isSecondary: index > 0,
        socketPath: socketBeside(this.#socketPath, name),
        configOf: (whole) => ingestConfig(whole, index),
        spawn: () => fork(program, [INGEST_COMMAND], { serialization: 'advanced' }),
        child: undefined,
      }
    })
    this.#workers = Array.from({ length: this.#config.http.workers }, (_, index) => ({
      name: `worker-${index + 1}`,
      isSecondary: false,
      socketPath: this.#socketPath,
      configOf: (whole) => whole,
      spawn: spawnWorker,
      child: undefined,
    }))
  }

  /** @throws {MillraceError} of the first child that cannot start; the others are to be abandoned */
  async start(): Promise<void> {
    for (const posts of [this.#ingest, this.#workers])
      await Promise.all(posts.map((post) => this.#fill(post).ready))
    this.#isStarted = true
    for (const child of childrenOf(this.#ingest)) child.send({ type: 'announce' })
  }

  /**
   * Hands new settings to all processes.
   *
   * @throws {MillraceError} if the ingest process refuses them; nothing has changed then
   */
  async reload(config: Config): Promise<void> {
    const whole = this.#complete(config)
    const [first, ...others] = [...this.#ingest, ...this.#workers].filter(({ child }) => child)
    await first?.child?.reload(first.configOf(whole))
    this.#config = whole
    const reloading = others.map(async ({ name, child, configOf }) =>
      child?.reload(configOf(whole)).catch(({ message }: Error) => {
        this.#logger.error(`${name} cannot reload the settings: ${message}. It keeps the old ones.`)
      }),
    )
    await Promise.all(reloading)
  }

  /** Several ingest processes sign their calls, and leave HTTP to workers. */
  #complete(config: Config): Config {
    if (config.ingest.workers === 1) return config
    const workers = Math.max(1, config.http.workers)
    const clusterSecret = config.clusterSecret || this.#clusterSecret
    return { ...config, clusterSecret, http: { ...config.http, workers } }
  }

  /** See `Server.drain`. */
  drain(): void {
    for (const child of childrenOf(this.#ingest)) child.send({ type: 'drain' })
  }

  /** Ends the ingest processes, after a drain for players, then the workers: within 5 s, or 7 s in a cluster. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const limitMs = INGEST_LIMIT_MS + (this.#config.redisUrl === '' ? 0 : HAND_OVER_LIMIT_MS)
    await endAll(this.#ingest, { type: 'stop', drainMs: DRAIN_MS }, limitMs)
    await endAll(this.#workers, { type: 'stop', drainMs: 0 }, WORKER_LIMIT_MS)
    removeSocketDirectory(this.#socketPath)
  }

  /** Ends all processes soon, see `Server.abandon`. */
  async abandon(): Promise<void> {
    this.#isStopping = true
    for (const child of childrenOf(this.#workers)) child.kill()
    await endAll(this.#ingest, { type: 'abandon' }, ABANDON_LIMIT_MS)
    removeSocketDirectory(this.#socketPath)
  }

  /** Ends all processes at once. */
  kill(): void {
    this.#isStopping = true
    for (const child of childrenOf([...this.#ingest, ...this.#workers])) child.kill()
    removeSocketDirectory(this.#socketPath)
  }

  #fill(post: Post, isReplacement = false): Child {
    const { name, isSecondary, socketPath, configOf } = post
    const process = post.spawn()
    this.#registry?.serve(process)
    const config = configOf(this.#config)
    const child = new Child(process, { name, config, socketPath, isSecondary })
    post.child = child
    void this.#follow(post, child, isReplacement)
    return child
  }

  /** Follows a child to its end, and replaces it. */
  async #follow(post: Post, child: Child, wasReplacement: boolean): Promise<void> {
    const startedMs = now()
    const isIngest = this.#ingest.includes(post)
    const failure = await child.ready.then(
      () => undefined,
      (error: MillraceError) => error,
    )
    if (failure !== undefined) child.kill()
    else if (isIngest && this.#isStarted) child.send({ type: 'announce' })
    const exit = await child.ended
    post.child = undefined
    if (isIngest) this.#endLease()
    // `start` throws the failure of a first child.
    if (failure !== undefined && !wasReplacement) return
    if (failure !== undefined && failure.code !== 'PROCESS_LOST') {
      this.#logger.error(`${post.name} cannot start: ${failure.message}`)
    }
    this.#replace(post, exit, { startedMs, wasReplacement })
  }

  /** The next ingest process of a node finds its streams with their windows. */
  #endLease(): void {
    const config = this.#config
    if (this.#isStopping || config.redisUrl === '') return
    void import('../node/takeover/gone-nodes.ts').then(({ endEarlierProcess }) =>
      endEarlierProcess(config, true),
    )
  }

  #replace(post: Post, exit: Exit, death: Death): void {
    if (this.#isStopping) return
    const pauseMs = this.#policy.pauseAfter(death, now())
    if (pauseMs === undefined) {
      const message = `${MAX_DEATHS} processes ended within a minute, the last one was ${post.name} (${exit}): see the log`
      this.#fail(new MillraceError('PROCESS_LOST', { message }))
      return
    }
    const clients = this.#ingest.includes(post) ? 'Its encoders' : 'Its viewers'
    const pause = pauseMs === 0 ? 'now' : `in ${pauseMs} ms`
    this.#logger.error(
      `${post.name} ended (${exit}). ${clients} have to connect again. A replacement starts ${pause}.`,
    )
    setTimeout(() => !this.#isStopping && this.#fill(post, true), pauseMs)
  }
}

function childrenOf(posts: readonly Post[]): Child[] {
  return posts.flatMap(({ child }) => child ?? [])
}

/** Ends all processes at once, see `Child.end`. */
async function endAll(posts: readonly Post[], order: Order, limitMs: number): Promise<void> {
  await Promise.all(childrenOf(posts).map((child) => child.end(order, limitMs)))
}

/** Settings of one of several ingest processes: its share of what the settings allow all of them. */
function ingestConfig(config: Config, index: number): Config {
  const { ingest, cache, archive, hls, maxPublishers, srt, srtla } = config
  if (ingest.workers === 1) return config
  const share = (total: number) => Math.ceil(total / ingest.workers)
  return {
    ...config,
    nodeUrl: `http://${nameOfIngest(index + 1)}`,
    maxPublishers: share(maxPublishers),
    cache: { maxMib: Math.max(MIN_CACHE_MIB, share(cache.maxMib)) },
    hls: { ...hls, dvrCacheMib: Math.max(MIN_CACHE_MIB, share(hls.dvrCacheMib)) },
    archive: { ...archive, maxMib: Math.max(MIN_ARCHIVE_MIB, share(archive.maxMib)) },
    srt: { ...srt, maxReaders: share(srt.maxReaders) },
    // Its lines come to one process.
    srtla: index === 0 ? srtla : { ...srtla, port: 0 },
  }
}

function spawnWorker(): ChildProcess {
  const worker = cluster.fork()
  // Repeats the error event of its process, and would throw without a listener.
  worker.on('error', () => undefined)
  return worker.process
}

function now(): number {
  return systemClock.nowUs() / 1000
}
