/**
 * Connection to the Redis of the cluster: one at a time, made again for as long as it takes. Commands are never queued
 * for a server that is away: they fail at once, since their callers know better what to do meanwhile.
 *
 * @module
 */
import { EventEmitter, once } from 'node:events'
import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, RESP_TYPES } from '@redis/client'
import { machineClock } from '../../timing/clock.ts'
import type { Logger } from '../../logger.ts'
import { startTimeLimit, withTimeout, TimeoutError } from '../../timing/time-limit.ts'
import { parseRedisUrl, type HostPort, type RedisTarget } from './redis-url.ts'
import { findMaster, type Master } from './sentinels.ts'
import { unavailable } from './unavailable.ts'

type Client = ReturnType<typeof openClient>

export type Argument = string | Buffer

export interface RedisOptions {
  /** See `parseRedisUrl`. */
  readonly url: string
  /** Default time limit of a command and of a connection attempt, in milliseconds. */
  readonly timeoutMs?: number
  /** Whether a server that takes no writes will do, as long as it is the master; default: false. */
  readonly readsOnly?: boolean
}

/** Time limit of a command: ten times what a script on 1,000 streams takes, and below the accept hook's 2.5 s. */
const TIMEOUT_MS = 500

/** Waits between connection attempts, in milliseconds: doubled each time. */
const RETRY_MS = { first: 50, max: 1000 }

/**
 * Time without any reply after which the connection counts as lost, in time limits of a command: TCP alone needs 15
 * minutes. A pause of the server that makes many commands late at once is shorter.
 */
const MAX_SILENCE = 2.5

/** Interval at which Sentinels are asked whether the master is still the one, in milliseconds. */
const WATCH_MS = 3000

/** Commands that may wait for their replies. */
const MAX_PENDING = 10_000

/** Option of commands whose replies are media. */
const BINARY = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

/** Replies of a server that is no master, or not for this user: it counts as away. */
const REFUSAL =
  /^(READONLY|MASTERDOWN|LOADING|NOAUTH|NOPERM|ERR The user executing the script|ERR unknown command)\b/

/** Replies of a master that takes no writes. */
const WRITE_REFUSAL = /^(OOM|MISCONF|NOREPLICAS)\b/

/** Write without effect, which is refused where others would be. */
const TRIAL = ['SETRANGE', 'mr:trial', '0', '']

/** Unlike `ROLE`, users that may do nothing dangerous may be allowed it; those who only read run scripts, too. */
const REPLICATION = ['EVAL', "return redis.call('INFO', 'replication')", '0']

/** Time for which a connection holds before the server counts as back: one that takes the trial may refuse all else. */
const STEADY_MS = 1000

/**
 * Calling order: `connect` once, `ready` and `command` at any time, `close` once. Events: `ready` for each connection, `steady` once
 * it has held for 1 s, `lost` with the reason when it ends, and whenever attempts to make one fail; until `steady` not
 * again for the same reason.
 */
export class Redis extends EventEmitter<{ ready: []; steady: []; lost: [reason: string] }> {
  readonly #target: RedisTarget
  readonly #timeoutMs: number
  readonly #readsOnly: boolean
  readonly #closing = new AbortController()
  #client: Client | undefined
  /** Ends the current connection. */
  #lose: (reason: Error) => void = () => undefined
  /** Time since which no command has had a reply; undefined: the latest reply is newer than all commands that wait. */
  #silentSinceUs: number | undefined
  #awaySinceUs: number | undefined
  #done: Promise<void> = Promise.resolve()

  /** @throws {MillraceError} `CONFIG_INVALID` for a URL of another shape */
  constructor({ url, timeoutMs = TIMEOUT_MS, readsOnly = false }: RedisOptions) {
    super()
    this.#readsOnly = readsOnly
    this.#target = parseRedisUrl(url)
    this.#timeoutMs = timeoutMs
  }

  get isReady(): boolean {
    return this.#client !== undefined
  }

  /** Since when there is no connection; undefined while there is one, and until the first attempt has failed. */
  get awaySinceUs(): number | undefined {
    return this.#awaySinceUs
  }

  /** Begins to connect, and to connect anew whenever the connection is lost. */
  connect(): void {
    this.#done = this.#stayConnected()
  }

  /** Waits for a connection. @throws {MillraceError} `REGISTRY_UNAVAILABLE` after the time limit */
  async ready(timeoutMs: number): Promise<void> {
    if (this.isReady) return
    const limit = startTimeLimit(timeoutMs)
    const signal = AbortSignal.any([this.#closing.signal, limit.signal])
    try {
      await once(this, 'ready', { signal })
    } catch (cause) {
      throw unavailable(cause)
    } finally {
      limit.cancel()
    }
  }

  /**
   * @param options.timeoutMs  replaces the default time limit, for commands that block
   * @param options.binary  whether strings of the reply are Buffers
   * @returns reply, as RESP 2
   * @throws {MillraceError} `REGISTRY_UNAVAILABLE`: not connected, no reply in time (the command may have been carried
   *   out nevertheless), or refused, with the error of Redis as `cause`
   */
  async command(
    args: readonly Argument[],
    {
      timeoutMs = this.#timeoutMs,
      binary = false,
    }: { readonly timeoutMs?: number; readonly binary?: boolean } = {},
  ): Promise<unknown> {
    const client = this.#client
    if (client === undefined) throw unavailable(new Error('not connected'))
    this.#silentSinceUs ??= machineClock.nowUs()
    try {
      const reply = await withTimeout(client.sendCommand(args, binary ? BINARY : {}), timeoutMs)
      this.#silentSinceUs = undefined
      return reply
    } catch (cause) {
      if (client === this.#client) this.#note(cause)
      throw unavailable(cause)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#lose(new Error('closed'))
    await this.#done
  }

  /** Gives the connection up if the failure says that it, or its server, is of no more use. */
  #note(cause: unknown): void {
    if (!(cause instanceof TimeoutError)) this.#silentSinceUs = undefined
    if (!(cause instanceof Error)) return
    const silentMs = (machineClock.nowUs() - (this.#silentSinceUs ?? Infinity)) / 1000
    const isSilent = silentMs >= MAX_SILENCE * this.#timeoutMs
    const isFull = !this.#readsOnly && WRITE_REFUSAL.test(cause.message)
    if (REFUSAL.test(cause.message) || isFull || isSilent) this.#lose(cause)
  }

  async #stayConnected(): Promise<void> {
    const { signal } = this.#closing
    let failures = 0
    let known: string | undefined
    const onSteady = () => {
      failures = 0
      known = undefined
      this.emit('steady')
    }
    while (!signal.aborted) {
      const { message } = await this.#holdConnection(onSteady)
      this.#awaySinceUs ??= machineClock.nowUs()
      if (message !== known && !signal.aborted) this.emit('lost', message)
      known = message
      const waitMs = Math.min(RETRY_MS.first * 2 ** Math.min(failures, 10), RETRY_MS.max)
      failures++
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** @returns why there is no connection, or no longer one */
  async #holdConnection(onSteady: () => void): Promise<Error> {
    const lost = new Promise<Error>((resolve) => {
      this.#lose = resolve
    })
    let client: Client | undefined
    let watch: NodeJS.Timeout | undefined
    let steady: NodeJS.Timeout | undefined
    try {
      const address = await this.#findServer()
      client = this.#open(address)
      const opened = this.#check(client)
      opened.catch(() => undefined)
      const reason = await Promise.race([opened, lost])
      if (reason !== undefined) return reason
      this.#client = client
      this.#silentSinceUs = undefined
      this.#awaySinceUs = undefined
      steady = setTimeout(onSteady, STEADY_MS)
      this.emit('ready')
      if (this.#target.masterName !== undefined) watch = this.#watchSentinels(address)
      return await lost
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    } finally {
      clearInterval(watch)
      clearTimeout(steady)
      this.#client = undefined
      client?.destroy()
    }
  }

  async #findServer(): Promise<Master> {
    const { addresses, masterName } = this.#target
    if (masterName === undefined) return { ...addresses[0]!, epoch: 0 }
    return findMaster(addresses, masterName, async (address, commands) => {
      const { tls, sentinel: credentials } = this.#target
      const sentinel = openClient(address, { tls, ...credentials }, this.#timeoutMs)
      try {
        await withTimeout(sentinel.connect(), this.#timeoutMs)
        const replies = commands.map((command) => sentinel.sendCommand(command))
        return await withTimeout(Promise.all(replies), this.#timeoutMs)
      } finally {
        sentinel.destroy()
      }
    })
  }

  /** Gives up a master that has been replaced, and that the Sentinels cannot reach to tell it so. */
  #watchSentinels({ host, port, epoch }: Master): NodeJS.Timeout {
    const lose = this.#lose
    const compare = async () => {
      const master = await this.#findServer()
      const isOther = master.host !== host || master.port !== port
      if (isOther && master.epoch > epoch) lose(new Error('the Sentinels have another master'))
    }
    return setInterval(() => void compare().catch(() => undefined), WATCH_MS)
  }

  #open(address: HostPort): Client {
    const client = openClient(address, this.#target, this.#timeoutMs)
    client.on('error', (error: Error) => this.#lose(error))
    return client
  }

  /** Connects, and tries whether it is the master: a Sentinel may still name one that has just been demoted. */
  async #check(client: Client): Promise<undefined> {
    await withTimeout(client.connect(), 2 * this.#timeoutMs)
    const reply = await withTimeout(
      client.sendCommand(this.#readsOnly ? REPLICATION : TRIAL),
      this.#timeoutMs,
    )
    const isMaster = typeof reply === 'string' && /^role:master\b/m.test(reply)
    if (this.#readsOnly && !isMaster) throw new Error('not the master')
  }
}

/** Logs each change of the connection to the registry in a line. */
export function logRegistry(redis: Redis, logger: Logger): void {
  redis.on('steady', () => logger.info('the registry of the cluster answers'))
  redis.on('lost', (reason) => {
    logger.warn({ reason }, 'the registry of the cluster does not answer')
  })
}

function openClient(
  { host, port }: HostPort,
  {
    username,
    password,
    database,
    tls = false,
  }: Partial<Pick<RedisTarget, 'username' | 'password' | 'database' | 'tls'>>,
  timeoutMs: number,
) {
  const client = createClient({
    RESP: 2,
    socket: {
      host,
      port,
      connectTimeout: timeoutMs,
      reconnectStrategy: false,
      ...secured(tls, host),
    },
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { database }),
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_PENDING,
    // The client's own limit makes a timer for each command, and ends when the command is written.
    commandOptions: { timeout: 0 },
    maintNotifications: 'disabled',
    disableClientInfo: true,
  })
  // An `error` event without a listener ends the process.
  client.on('error', () => undefined)
  return client
}

/** Server names are no addresses (RFC 6066 3); certificates are compared with either. */
function secured(tls: boolean, host: string) {
  return tls ? { tls: true as const, ...(isIP(host) === 0 && { servername: host }) } : {}
}
