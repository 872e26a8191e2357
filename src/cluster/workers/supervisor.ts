/**
 * Supervisor: one ingest process and some workers, which it starts, replaces and stops. It carries no media; it accepts
 * the connections to `HTTP_PORT` and hands them to the workers in turn.
 *
 *     encoders ──► ingest process ◄── Unix socket ── worker × n ◄── viewers
 *
 * @module
 */
import { fork, type ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../timing/clock.ts'
import { MillraceError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { DRAIN_MS } from '../../service/service-process.ts'
import { Child, type Exit } from './child.ts'
import { INGEST_COMMAND, WORKER_COMMAND } from './messages.ts'
import { MAX_DEATHS, ReplacementPolicy, type Death } from './replacement-policy.ts'
import { createSocketPath, removeSocketDirectory } from './socket-directory.ts'

/** Time limits for the end of the ingest process, drain included, and then of the workers: 5 s together. */
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
  readonly spawn: () => ChildProcess
  child: Child | undefined
}

/** Calling order: `start`, then `reload`; `stop`, `abandon` or `kill` at any time. */
export class Supervisor {
  /** Rejects when children die too often; the others are to be abandoned. */
  readonly failed: Promise<never>
  readonly #logger: Logger
  readonly #socketPath = createSocketPath()
  readonly #ingest: Post
  readonly #workers: readonly Post[]
  readonly #policy = new ReplacementPolicy()
  /** For children that start from now on. */
  #config: Config
  #isStarted = false
  #isStopping = false
  #fail!: (error: Error) => void

  constructor({ program, config, logger }: SupervisorOptions) {
    this.#config = config
    this.#logger = logger
    this.failed = new Promise((_resolve, reject) => (this.#fail = reject))
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: program, args: [WORKER_COMMAND] })
    const spawnIngest = () => fork(program, [INGEST_COMMAND])
    this.#ingest = { name: 'ingest', spawn: spawnIngest, child: undefined }
    this.#workers = Array.from({ length: config.http.workers }, (_, index) => {
      return { name: `worker-${index + 1}`, spawn: spawnWorker, child: undefined }
    })
  }

  /** @throws {MillraceError} of the first child that cannot start; the others are to be abandoned */
  async start(): Promise<void> {
    await this.#fill(this.#ingest).ready
    await Promise.all(this.#workers.map((post) => this.#fill(post).ready))
    this.#isStarted = true
    this.#ingest.child?.send({ type: 'announce' })
  }

  /**
   * Hands new settings to all processes.
   *
   * @throws {MillraceError} if the ingest process refuses them; nothing has changed then
   */
  async reload(config: Config): Promise<void> {
    await this.#ingest.child?.reload(config)
    this.#config = config
    const reloading = this.#workers.map(async ({ name, child }) =>
      child?.reload(config).catch(({ message }: Error) => {
        this.#logger.error(`${name} cannot reload the settings: ${message}. It keeps the old ones.`)
      }),
    )
    await Promise.all(reloading)
  }

  /** See `Server.drain`. */
  drain(): void {
    this.#ingest.child?.send({ type: 'drain' })
  }

  /** Ends the ingest process, after a drain for players, then the workers: within 5 s, or 7 s in a cluster. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const limitMs = INGEST_LIMIT_MS + (this.#config.redisUrl === '' ? 0 : HAND_OVER_LIMIT_MS)
    await this.#ingest.child?.end({ type: 'stop', drainMs: DRAIN_MS }, limitMs)
    const order = { type: 'stop', drainMs: 0 } as const
    const workers = this.#workers.flatMap(({ child }) => child ?? [])
    await Promise.all(workers.map((child) => child.end(order, WORKER_LIMIT_MS)))
    removeSocketDirectory(this.#socketPath)
  }

  /** Ends all processes soon, see `Server.abandon`. */
  async abandon(): Promise<void> {
    this.#isStopping = true
    for (const { child } of this.#workers) child?.kill()
    await this.#ingest.child?.end({ type: 'abandon' }, ABANDON_LIMIT_MS)
    removeSocketDirectory(this.#socketPath)
  }

  /** Ends all processes at once. */
  kill(): void {
    this.#isStopping = true
    for (const { child } of [this.#ingest, ...this.#workers]) child?.kill()
    removeSocketDirectory(this.#socketPath)
  }

  #fill(post: Post, isReplacement = false): Child {
    const options = { name: post.name, config: this.#config, socketPath: this.#socketPath }
    const child = new Child(post.spawn(), options)
    post.child = child
    void this.#follow(post, child, isReplacement)
    return child
  }

  /** Follows a child to its end, and replaces it. */
  async #follow(post: Post, child: Child, wasReplacement: boolean): Promise<void> {
    const startedMs = now()
    const failure = await child.ready.then(
      () => undefined,
      (error: MillraceError) => error,
    )
    if (failure !== undefined) child.kill()
    else if (post === this.#ingest && this.#isStarted) child.send({ type: 'announce' })
    const exit = await child.ended
    post.child = undefined
    if (post === this.#ingest) this.#endLease()
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
    const clients = post === this.#ingest ? 'Encoders' : 'Its viewers'
    const pause = pauseMs === 0 ? 'now' : `in ${pauseMs} ms`
    this.#logger.error(
      `${post.name} ended (${exit}). ${clients} have to connect again. A replacement starts ${pause}.`,
    )
    setTimeout(() => !this.#isStopping && this.#fill(post, true), pauseMs)
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
