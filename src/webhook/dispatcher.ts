/**
 * Sends webhooks: to each URL in order, again until it answers 2xx, without one URL ever delaying another.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { sign } from '../auth/signature.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import { encodeEvent, type WebhookEvent, type WebhookType } from './event.ts'

export interface WebhookDispatcherOptions {
  /** Signs each body, as it does the requests of the API. */
  readonly hmacSecret: string
  readonly logger: Logger
  readonly fetch?: typeof fetch
  readonly clock?: Clock
  /** Waits; ends early, by rejecting, when the signal aborts. */
  readonly sleep?: (delayMs: number, signal: AbortSignal) => Promise<unknown>
}

/** Counted since the dispatcher was made. */
export interface WebhookStats {
  /** Answered 2xx. */
  readonly delivered: number
  /** Tries that failed. */
  readonly failed: number
  /** Given up: too old, too many before them, or cut off by `close`. */
  readonly dropped: number
  /** Events that came too soon after another of their name. */
  readonly suppressed: number
  /** Waiting or on their way now. */
  readonly pending: number
}

export interface WebhookDispatcher {
  /** Queues an event for each different URL and returns at once. What is no http URL counts as one that never answers. */
  send(urls: readonly string[], event: WebhookEvent): void
  stats(): WebhookStats
  /**
   * Takes no more events, gives each that is pending one last try, and settles when that is done; after `timeoutMs` it
   * cuts off what is still under way.
   */
  close(options: { readonly timeoutMs: number }): Promise<void>
}

const TRY_TIMEOUT_MS = 5000
const FIRST_RETRY_MS = 1000
const LONGEST_RETRY_MS = 60_000
const RETRY_FOR_US = 10 * 60 * 1_000_000
const LIMITED_INTERVAL_US = 10 * 1_000_000

/** A URL that is down for all of ten minutes loses what comes after these. */
const MAX_PENDING_PER_URL = 256

const CUT_OFF = 'cut off by the end of the service'

interface Delivery {
  readonly type: WebhookType
  readonly streamId: string | undefined
  readonly body: Buffer
  readonly signature: string
  readonly createdUs: number
}

export function createWebhookDispatcher(options: WebhookDispatcherOptions): WebhookDispatcher {
  return new Dispatcher(options)
}

class Dispatcher implements WebhookDispatcher {
  readonly #hmacSecret: string
  readonly #logger: Logger
  readonly #fetch: typeof fetch
  readonly #clock: Clock
  readonly #sleep: (delayMs: number, signal: AbortSignal) => Promise<unknown>

  /** By URL; the first of a queue is under way. An empty queue is removed. */
  readonly #queues = new Map<string, Delivery[]>()
  /** Each settles when its queue is empty. */
  readonly #draining = new Set<Promise<void>>()
  /** When each stream last sent what is limited, by both names; no older than the interval, oldest first. */
  readonly #limitedUs = new Map<string, number>()
  /** Ends all waiting for a next try. */
  readonly #closing = new AbortController()
  /** The tries under way. */
  readonly #tries = new Set<AbortController>()
  #cutOff = false
  readonly #stats = { delivered: 0, failed: 0, dropped: 0, suppressed: 0 }

  constructor(options: WebhookDispatcherOptions) {
    this.#hmacSecret = options.hmacSecret
    this.#logger = options.logger
    this.#fetch = options.fetch ?? fetch
    this.#clock = options.clock ?? systemClock
    this.#sleep = options.sleep ?? ((delayMs, signal) => delay(delayMs, undefined, { signal }))
    // Every URL that waits for its next try listens.
    setMaxListeners(0, this.#closing.signal)
  }

  send(urls: readonly string[], event: WebhookEvent): void {
    if (urls.length === 0) return
    if (this.#closing.signal.aborted) {
      this.#stats.dropped += urls.length
      return
    }
    if (event.limitedAs !== undefined && !this.#maySend(`${event.streamId} ${event.limitedAs}`)) {
      this.#stats.suppressed++
      return
    }
    const body = encodeEvent(event, randomUUID(), new Date(this.#clock.wallMs()))
    const delivery = {
      type: event.type,
      streamId: event.streamId,
      body,
      signature: sign(body, this.#hmacSecret),
      createdUs: this.#clock.nowUs(),
    }
    for (const url of new Set(urls)) this.#enqueue(url, delivery)
  }

  stats(): WebhookStats {
    const pending = [...this.#queues.values()].reduce((sum, queue) => sum + queue.length, 0)
    return { ...this.#stats, pending }
  }

  async close({ timeoutMs }: { readonly timeoutMs: number }): Promise<void> {
    this.#closing.abort()
    const drained = new AbortController()
    const timeout = this.#sleep(timeoutMs, drained.signal).then(
      () => this.#cutOffTries(),
      () => undefined,
    )
    await Promise.all(this.#draining)
    drained.abort()
    await timeout
  }

  #cutOffTries(): void {
    this.#cutOff = true
    for (const request of this.#tries) request.abort()
  }

  #maySend(name: string): boolean {
    const nowUs = this.#clock.nowUs()
    for (const [each, sentUs] of this.#limitedUs) {
      if (nowUs - sentUs < LIMITED_INTERVAL_US) break
      this.#limitedUs.delete(each)
    }
    if (this.#limitedUs.has(name)) return false
    this.#limitedUs.set(name, nowUs)
    return true
  }

  #enqueue(url: string, delivery: Delivery): void {
    const queue = this.#queues.get(url)
    if (queue === undefined) {
      const started = [delivery]
      this.#queues.set(url, started)
      const drained = this.#drain(url, started).finally(() => this.#draining.delete(drained))
      this.#draining.add(drained)
    } else if (queue.length < MAX_PENDING_PER_URL) {
      queue.push(delivery)
    } else {
      this.#drop(url, delivery, 'too many are waiting')
    }
  }

  async #drain(url: string, queue: Delivery[]): Promise<void> {
    for (let [first] = queue; first !== undefined; [first] = queue) {
      await this.#deliver(url, first)
      queue.shift()
    }
    this.#queues.delete(url)
  }

  /** Tries until it is delivered, would be too old at the next try, or the last try before the end has failed. */
  async #deliver(url: string, delivery: Delivery): Promise<void> {
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
      const lastTry = this.#closing.signal.aborted
      const failure = await this.#try(url, delivery)
      if (failure === undefined) {
        this.#stats.delivered++
        return
      }
      this.#stats.failed++
      const nextAgeUs = this.#clock.nowUs() + retryMs * 1000 - delivery.createdUs
      if (lastTry || nextAgeUs > RETRY_FOR_US) return this.#drop(url, delivery, failure)
      // Whoever waits for a webhook finds the reason at once, and finds it once.
      const level = retryMs === FIRST_RETRY_MS ? 'warn' : 'debug'
      this.#log(url, delivery)[level]({ failure }, 'webhook failed, to be tried again')
      await this.#sleep(retryMs, this.#closing.signal).catch(() => undefined)
    }
  }

  /** @returns why it failed, without anything of the URL, the body or the answer */
  async #try(url: string, { body, signature }: Delivery): Promise<string | undefined> {
    if (this.#cutOff) return CUT_OFF
    const request = new AbortController()
    const answered = new AbortController()
    this.#tries.add(request)
    void this.#sleep(TRY_TIMEOUT_MS, answered.signal).then(
      () => request.abort(),
      () => undefined,
    )
    try {
      const response = await this.#fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'lt-signature': signature },
        body,
        redirect: 'manual',
        signal: request.signal,
      })
      // Whatever it says: nobody reads it, and it may have no end.
      await response.body?.cancel().catch(() => undefined)
      return response.ok ? undefined : `answered ${response.status}`
    } catch (error) {
      if (this.#cutOff) return CUT_OFF
      return request.signal.aborted ? `no answer within ${TRY_TIMEOUT_MS} ms` : errorCode(error)
    } finally {
      answered.abort()
      this.#tries.delete(request)
    }
  }

  #drop(url: string, delivery: Delivery, failure: string): void {
    this.#stats.dropped++
    this.#log(url, delivery).warn({ failure }, 'webhook dropped')
  }

  #log(url: string, { type, streamId }: Delivery): Logger {
    // The path and the query of a webhook URL are often secret.
    const webhook = URL.canParse(url) ? new URL(url).origin : 'not a URL'
    return this.#logger.child({ webhook, type, stream_id: streamId })
  }
}

/** `ECONNREFUSED` and its like, which `fetch` hides in the cause. */
function errorCode(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.name
  return 'unknown'
}
