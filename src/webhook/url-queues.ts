/**
 * Queues of events by URL, bounded in events per URL, in URLs and in bytes.
 *
 * @module
 */
import type { Standing } from './connection-slots.ts'
import type { QueuedEvent } from './event.ts'

export const MAX_EVENTS_PER_URL = 256
export const MAX_URLS = 4096
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024

/** Memory of an event without its body. */
const OVERHEAD_BYTES = 64

/** Abort reason, one object for all queues: thousands of queues at a time would cost a stack trace each. */
const DISCARDED = new Error('the queue was discarded')

/** Events of one URL, oldest first. The first is being delivered; `UrlQueues` drops it only with the whole queue. */
export class UrlQueue {
  readonly url: string
  readonly events: QueuedEvent[] = []
  standing: Standing
  /** Aborts the current attempt, even while it waits for a connection. */
  attempt: AbortController | undefined
  /** Ends the pause before the next attempt. */
  pause: AbortController | undefined
  /** Whether `discard` removed the queue. All its events, the first included, then count as dropped. */
  isDiscarded = false
  /** Whether events were dropped since the last delivery. */
  hasOverflowed = false

  constructor(url: string, standing: Standing) {
    this.url = url
    this.standing = standing
  }
}

interface UrlQueuesOptions {
  /** Takes a queue with its first event, for delivery. */
  readonly onQueue: (queue: UrlQueue) => void
  /** Takes events that were dropped to make room. */
  readonly onDrop: (queue: UrlQueue, events: readonly QueuedEvent[]) => void
}

/**
 * Queues of all URLs, in the order of their last delivery or, before it, of their creation. At the limit of URLs the
 * first queue is discarded. At the limit of bytes each backlogged queue in turn loses a waiting event, until the
 * rest fits.
 */
export class UrlQueues implements Iterable<UrlQueue> {
  readonly #options: UrlQueuesOptions
  readonly #queues = new Map<string, UrlQueue>()
  /** Queues with events behind the one being delivered. A queue moves to the end with each delivery. */
  readonly #backlogged = new Set<UrlQueue>()
  /** URLs whose last event was delivered, in the order of delivery. */
  readonly #proven = new Set<string>()
  #sizeBytes = 0
  #events = 0

  constructor(options: UrlQueuesOptions) {
    this.#options = options
  }

  /** Number of events waiting or being delivered. */
  get events(): number {
    return this.#events
  }

  push(url: string, event: QueuedEvent): void {
    const queue = this.#queues.get(url) ?? this.#create(url)
    queue.events.push(event)
    this.#events++
    this.#sizeBytes += sizeOf(event)
    if (queue.events.length > MAX_EVENTS_PER_URL) this.#dropOldest(queue)
    if (queue.events.length === 1) this.#options.onQueue(queue)
    else this.#backlogged.add(queue)
    for (const each of this.#backlogged) {
      if (this.#sizeBytes <= MAX_QUEUED_BYTES) break
      this.#dropOldest(each)
    }
  }

  /** Removes the first event of a queue, and the queue with its last event. */
  shift(queue: UrlQueue): void {
    const event = queue.events.shift()
    if (event !== undefined) this.#forget(event)
    if (queue.events.length <= 1) this.#backlogged.delete(queue)
    if (queue.events.length === 0) this.#queues.delete(queue.url)
  }

  /** Records the outcome of an attempt. */
  recordAttempt(queue: UrlQueue, { isDelivered }: { readonly isDelivered: boolean }): void {
    queue.standing = isDelivered ? 'proven' : 'failing'
    this.#proven.delete(queue.url)
    if (!isDelivered) return
    queue.hasOverflowed = false
    this.#proven.add(queue.url)
    const [first] = this.#proven
    if (first !== undefined && this.#proven.size > MAX_URLS) this.#proven.delete(first)
    this.#queues.delete(queue.url)
    this.#queues.set(queue.url, queue)
    if (this.#backlogged.delete(queue)) this.#backlogged.add(queue)
  }

  /**
   * Removes a queue and ends its delivery.
   *
   * @returns its events
   */
  discard(queue: UrlQueue): QueuedEvent[] {
    const events = queue.events.splice(0)
    for (const event of events) this.#forget(event)
    this.#queues.delete(queue.url)
    this.#backlogged.delete(queue)
    queue.isDiscarded = true
    queue.attempt?.abort(DISCARDED)
    queue.pause?.abort(DISCARDED)
    return events
  }

  [Symbol.iterator](): IterableIterator<UrlQueue> {
    return this.#queues.values()
  }

  #create(url: string): UrlQueue {
    const [first] = this
    if (first !== undefined && this.#queues.size >= MAX_URLS) {
      this.#options.onDrop(first, this.discard(first))
    }
    const queue = new UrlQueue(url, this.#proven.has(url) ? 'proven' : 'new')
    this.#queues.set(url, queue)
    return queue
  }

  /** Drops the oldest waiting event; a number of viewers first, since the next one replaces it. */
  #dropOldest(queue: UrlQueue): void {
    const stale = queue.events.findIndex(({ type }, i) => i > 0 && type === 'stream.viewers')
    const events = queue.events.splice(stale === -1 ? 1 : stale, 1)
    for (const event of events) this.#forget(event)
    if (queue.events.length <= 1) this.#backlogged.delete(queue)
    this.#options.onDrop(queue, events)
  }

  #forget(event: QueuedEvent): void {
    this.#events--
    this.#sizeBytes -= sizeOf(event)
  }
}

function sizeOf({ body }: QueuedEvent): number {
  return body.length + OVERHEAD_BYTES
}
