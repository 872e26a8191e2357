/**
 * Delivery of webhooks: in order for each URL, independent of other URLs, retried for up to 10 minutes.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { machineClock, type Clock } from '../timing/clock.ts'
import { MillraceError } from '../errors.ts'
import { IntervalLimiter } from '../timing/interval-limiter.ts'
import type { Logger } from '../logger.ts'
import { isForbiddenUrl, parseAllowList, type AllowList } from '../outbound/address-rules.ts'
import type { LookUpOptions } from '../outbound/look-up.ts'
import { WebhookClient } from './client.ts'
import { ConnectionSlots, PLACE_TIME_MS, type Slot } from './connection-slots.ts'
import { DeliveryLog } from './delivery-log.ts'
import {
  encodeEvent,
  encodeHeaders,
  type AddressedEvent,
  type EventOutbox,
  type QueuedEvent,
  type WebhookEvent,
} from './event.ts'
import { UrlQueues, type UrlQueue } from './url-queues.ts'

export interface WebhookDispatcherOptions {
  /** Keys that sign each webhook: the current one and, during a rotation, the previous one. */
  readonly readKeys: () => readonly Uint8Array[]
  /** Allowed receivers; by default all but forbidden addresses. */
  readonly allowed?: AllowList | undefined
  /** Logger with a rate limit of its own, since thousands of URLs may fail at once. */
  readonly logger: Logger
  /** Default `machineClock`: receivers reject timestamps 5 minutes off, a `SteadyClock` may be so for 10. */
  readonly clock?: Clock
  /** Waits; rejects when the signal aborts. */
  readonly sleep?: (delayMs: number, signal: AbortSignal) => Promise<unknown>
  readonly createResolver?: LookUpOptions['createResolver']
  /** Called after each attempt, and for each event that is dropped without one. */
  readonly onAttempt?: ((attempt: Attempt) => void) | undefined
  /** Returns what keeps events for other processes; default: they are lost with this one. */
  readonly readOutbox?: () => EventOutbox | undefined
}

/** An attempt to deliver an event to a URL, or its end without one. */
interface Attempt {
  readonly url: string
  readonly event: QueuedEvent
  /** Number of attempts so far. */
  readonly attempts: number
  readonly outcome: 'delivered' | 'retried' | 'dropped'
  /** Status of the response; undefined without one. */
  readonly status?: number | undefined
  /** Why it was not delivered: an error code or the response status, nothing of the URL or of a body. */
  readonly failure?: string
}

/** Counters since the dispatcher was created. An event counts once per URL, a suppressed event once. */
export interface WebhookStats {
  /** Events with a 2xx response. */
  readonly delivered: number
  /** Failed attempts. */
  readonly failed: number
  /** Events dropped: too old, displaced by newer ones, to a forbidden address, or undelivered at shutdown. */
  readonly dropped: number
  /** Events suppressed by `rateLimitKey`. */
  readonly suppressed: number
  /** Events waiting or being delivered. */
  readonly pending: number
}

export interface WebhookDispatcher {
  /** Queues an event for each distinct URL and returns at once. */
  send(urls: readonly string[], event: WebhookEvent): void
  /** @returns the event as `deliver` takes it */
  address(urls: readonly string[], event: WebhookEvent): AddressedEvent
  /** Queues an event that the outbox has, for each of its URLs. */
  deliver(event: AddressedEvent): void
  /** @throws {MillraceError} `BODY_INVALID` for a URL that is forbidden no matter what a look-up returns */
  check(urls: readonly string[]): void
  stats(): WebhookStats
  /**
   * Accepts no more events and gives each pending event a last attempt. URLs whose last event was delivered have
   * connections of their own, so URLs that fail do not delay them. A URL that does not respond to a last attempt loses
   * its remaining events. With an outbox there are no last attempts: events that are not being delivered stay there.
   * Settles when all events are delivered or dropped, at the latest after `timeoutMs`.
   */
  close(options: { readonly timeoutMs: number }): Promise<void>
}

const ATTEMPT_TIMEOUT_MS = 5000
const FIRST_RETRY_MS = 1000
const MAX_RETRY_MS = 60_000
const RETRY_FOR_US = 10 * 60 * 1_000_000
const LIMITED_INTERVAL_US = 10 * 1_000_000

/** Failure of an event that became too old while it waited for a connection. */
const TOO_OLD = 'waited too long for a connection'

/** Abort reason shared by all attempts: to create an error for each attempt would cost a stack trace. */
const ENDED = new Error('the attempt has ended')

interface Result extends Pick<Attempt, 'status' | 'failure'> {
  /** Whether no further attempt can succeed. */
  readonly isFinal?: boolean
}

export function createWebhookDispatcher(options: WebhookDispatcherOptions): WebhookDispatcher {
  return new Dispatcher(options)
}

class Dispatcher implements WebhookDispatcher {
  readonly #readKeys: () => readonly Uint8Array[]
  readonly #allowed: AllowList
  readonly #clock: Clock
  readonly #sleep: (delayMs: number, signal: AbortSignal) => Promise<unknown>
  readonly #log: DeliveryLog
  readonly #onAttempt: (attempt: Attempt) => void
  readonly #readOutbox: () => EventOutbox | undefined
  readonly #client: WebhookClient
  readonly #slots = new ConnectionSlots()
  readonly #limiter = new IntervalLimiter(LIMITED_INTERVAL_US)
  readonly #queues = new UrlQueues({
    onQueue: (queue) => this.#start(queue),
    onDrop: (queue, events) => this.#noteOverflow(queue, events),
  })
  /** One promise for each queue, which settles when the queue is empty. */
  readonly #draining = new Set<Promise<void>>()
  #isClosing = false
  readonly #stats = { delivered: 0, failed: 0, dropped: 0, suppressed: 0 }

  constructor(options: WebhookDispatcherOptions) {
    const { clock = machineClock, createResolver } = options
    this.#readKeys = options.readKeys
    this.#allowed = options.allowed ?? parseAllowList('')!
    this.#clock = clock
    this.#sleep = options.sleep ?? ((delayMs, signal) => delay(delayMs, undefined, { signal }))
    this.#log = new DeliveryLog(options.logger)
    this.#onAttempt = options.onAttempt ?? (() => undefined)
    this.#readOutbox = options.readOutbox ?? (() => undefined)
    this.#client = new WebhookClient(this.#allowed, { clock, createResolver })
  }

  get #outbox(): EventOutbox | undefined {
    return this.#readOutbox()
  }

  send(urls: readonly string[], event: WebhookEvent): void {
    if (urls.length === 0) return
    const { streamId, rateLimitKey } = event
    if (this.#isClosing && this.#outbox === undefined) {
      this.#stats.dropped += urls.length
      return
    }
    const limited = `${streamId} ${rateLimitKey}`
    if (rateLimitKey !== undefined && !this.#limiter.take(limited, this.#clock.nowUs())) {
      this.#stats.suppressed++
      return
    }
    const addressed = this.address(urls, event)
    this.#outbox?.keep(addressed)
    this.deliver(addressed)
  }

  address(urls: readonly string[], event: WebhookEvent): AddressedEvent {
    const { id = randomUUID() } = event
    const body = encodeEvent(event, id, new Date(this.#clock.wallMs()))
    const { type, streamId } = event
    return { type, streamId, id, body, createdUs: this.#clock.nowUs(), urls: [...new Set(urls)] }
  }

  deliver(event: AddressedEvent): void {
    if (this.#isClosing) return
    for (const url of event.urls) {
      if (isForbiddenUrl(this.#allowed, url))
        this.#drop({ url, event, attempts: 0, failure: 'ADDRESS_FORBIDDEN' })
      else this.#queues.push(url, event)
    }
  }

  check(urls: readonly string[]): void {
    if (!urls.some((url) => isForbiddenUrl(this.#allowed, url))) return
    throw new MillraceError('BODY_INVALID', {
      message:
        'webhook_urls must not lead to link-local, metadata or multicast addresses, or beyond WEBHOOK_ALLOW where it is set',
    })
  }

  stats(): WebhookStats {
    return { ...this.#stats, pending: this.#queues.events }
  }

  async close({ timeoutMs }: { readonly timeoutMs: number }): Promise<void> {
    this.#isClosing = true
    const droppedBefore = this.#stats.dropped
    for (const { pause } of this.#queues) pause?.abort()
    const drained = new AbortController()
    this.#after(timeoutMs, drained.signal, () => this.#discardAll())
    await Promise.all(this.#draining)
    drained.abort()
    this.#client.close()
    const dropped = this.#stats.dropped - droppedBefore
    if (dropped > 0) this.#log.logDropsAtClose(dropped)
  }

  #discardAll(): void {
    for (const queue of this.#queues) this.#discardAtClose(queue)
  }

  #start(queue: UrlQueue): void {
    const drained = this.#drain(queue).finally(() => this.#draining.delete(drained))
    this.#draining.add(drained)
  }

  async #drain(queue: UrlQueue): Promise<void> {
    for (let [first] = queue.events; first !== undefined; [first] = queue.events) {
      await this.#deliver(queue, first)
      if (!queue.isDiscarded) this.#queues.shift(queue)
    }
  }

  /** Leaves the events of a queue to other processes, or drops them. */
  #discardAtClose(queue: UrlQueue): void {
    const { length } = this.#queues.discard(queue)
    if (this.#outbox === undefined) this.#stats.dropped += length
  }

  /** Attempts delivery until it succeeds, no further attempt is allowed, or the queue is discarded. */
  async #deliver(queue: UrlQueue, event: QueuedEvent): Promise<void> {
    const { url } = queue
    let retryMs = FIRST_RETRY_MS
    for (let attempts = 1; !queue.isDiscarded; attempts++) {
      if (this.#isClosing && this.#outbox !== undefined) return this.#discardAtClose(queue)
      const isLastAttempt = this.#isClosing
      const { status, failure, isFinal = false } = await this.#attempt(queue, event)
      if (queue.isDiscarded) return
      if (failure === TOO_OLD) {
        this.#drop({ url, event, attempts: attempts - 1, failure })
        return
      }
      this.#queues.recordAttempt(queue, { isDelivered: failure === undefined })
      if (failure === undefined) {
        this.#stats.delivered++
        this.#outbox?.settle(event.id, url)
        this.#onAttempt({ url, event, attempts, outcome: 'delivered', status })
        return
      }
      this.#stats.failed++
      const nextAgeUs = this.#clock.nowUs() + retryMs * 1000 - event.createdUs
      if (isLastAttempt || isFinal || nextAgeUs > RETRY_FOR_US) {
        this.#drop({ url, event, attempts, status, failure })
        if (isLastAttempt && status === undefined) this.#discardRest(queue)
        return
      }
      this.#log.logRetry({ url, event, failure, isFirst: attempts === 1 })
      this.#onAttempt({ url, event, attempts, outcome: 'retried', status, failure })
      await this.#pause(queue, retryMs)
      retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)
    }
  }

  /** @returns a failure unless the event was delivered */
  async #attempt(queue: UrlQueue, event: QueuedEvent): Promise<Result> {
    const attempt = new AbortController()
    const ended = new AbortController()
    const url = new URL(queue.url)
    let slot: Slot | undefined
    queue.attempt = attempt
    try {
      slot = await this.#slots.acquire(url.origin, queue.standing, attempt.signal)
      if (this.#clock.nowUs() - event.createdUs > RETRY_FOR_US) return { failure: TOO_OLD }
      this.#after(PLACE_TIME_MS, ended.signal, slot.leavePlace)
      this.#after(ATTEMPT_TIMEOUT_MS, ended.signal, () => attempt.abort())
      const headers = encodeHeaders(event, this.#clock.wallMs(), this.#readKeys())
      const status = await this.#client.send(url, headers, event.body, attempt.signal)
      return status >= 200 && status < 300 ? { status } : { status, failure: `answered ${status}` }
    } catch (error) {
      if (attempt.signal.aborted) return { failure: `no answer within ${ATTEMPT_TIMEOUT_MS} ms` }
      const failure = errorCode(error)
      return { failure, isFinal: failure === 'ADDRESS_FORBIDDEN' }
    } finally {
      ended.abort(ENDED)
      slot?.release()
      queue.attempt = undefined
    }
  }

  async #pause(queue: UrlQueue, delayMs: number): Promise<void> {
    if (this.#isClosing) return
    queue.pause = new AbortController()
    await this.#sleep(delayMs, queue.pause.signal).catch(() => undefined)
    queue.pause = undefined
  }

  /** Calls `act` after a delay, unless the signal aborts first. */
  #after(delayMs: number, signal: AbortSignal, act: () => void): void {
    void this.#sleep(delayMs, signal).then(act, () => undefined)
  }

  #drop(attempt: Omit<Attempt, 'outcome'> & { readonly failure: string }): void {
    const { url, event, failure } = attempt
    this.#stats.dropped++
    this.#outbox?.settle(event.id, url)
    this.#log.logDrop({ url, event, failure })
    this.#onAttempt({ ...attempt, outcome: 'dropped' })
  }

  /** Discards the queue. The first event is already counted as dropped, the others are counted here. */
  #discardRest(queue: UrlQueue): void {
    this.#stats.dropped += this.#queues.discard(queue).length - 1
  }

  #noteOverflow(queue: UrlQueue, events: readonly QueuedEvent[]): void {
    const [first] = events
    this.#stats.dropped += events.length
    for (const event of events) {
      this.#outbox?.settle(event.id, queue.url)
      const failure = 'queue is full'
      this.#onAttempt({ url: queue.url, event, attempts: 0, outcome: 'dropped', failure })
    }
    if (queue.hasOverflowed || first === undefined) return
    queue.hasOverflowed = true
    this.#log.logDrop({ url: queue.url, event: first, failure: 'queue is full' })
  }
}

/** Code or name of an error, for example `ECONNREFUSED`. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error ? String(error.code) : error.name
}
