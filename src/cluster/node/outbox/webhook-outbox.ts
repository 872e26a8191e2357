/**
 * Webhooks of this node that outlive it: it delivers them itself, and Redis has them until they are delivered or dropped.
 * If the node is gone, another one delivers what it finds there.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock, Timers } from '../../../timing/clock.ts'
import type { EndedRun, OutboxEvent, Outboxes, RunName } from '../../registry/outboxes.ts'
import type { Logger } from '../../../logger.ts'
import { withTimeout } from '../../../timing/time-limit.ts'
import { DeliveryLog } from '../../../webhook/delivery-log.ts'
import type { WebhookDispatcher } from '../../../webhook/dispatcher.ts'
import type { WebhookEvent, AddressedEvent, EventOutbox } from '../../../webhook/event.ts'
import { endEvent } from '../../../service/notifications.ts'
import { openEvent, sealEvent, type NumberedEvent } from './sealed-event.ts'
import { NO_TOTALS } from '../control/remote-records.ts'

/** Bounds of what a node keeps in Redis. Events beyond are delivered, unless the node dies before. */
const MAX_EVENTS = 10_000
const MAX_BYTES = 32 * 1024 * 1024
const MAX_EVENT_BYTES = 128 * 1024

/** Changes in one call. */
const MAX_NEW = 50
const MAX_OVER = 1000

/** Ended runs that are announced in one round, and those that are known to have been. */
const MAX_ENDS = 100
const MAX_KNOWN_ENDS = 10_000

interface WebhookOutboxOptions {
  readonly node: string
  readonly outboxes: Pick<Outboxes, keyof Outboxes>
  readonly clock: Clock
  readonly timers: Pick<Timers, 'sleep'>
  readonly logger: Logger
  readonly webhooks: Pick<WebhookDispatcher, 'address' | 'deliver'>
  /** Reads `CLUSTER_SECRET`, at least one: the first seals. */
  readonly readClusterSecrets: () => readonly string[]
  /** Webhook URLs of streams without their own. */
  readonly webhookUrls: readonly string[]
}

/** Event that announces the end of a run. */
interface EndEvent {
  readonly urls: readonly string[]
  readonly event: WebhookEvent
}

export interface OutboxReport {
  /** Undelivered events that Redis has. */
  readonly kept: number
  /** Undelivered events that Redis has not acknowledged. */
  readonly waiting: number
  /** Events that were not kept, since there were too many. */
  readonly unkept: number
  /** Events of nodes that are gone. */
  readonly found: number
  /** Events of Redis that no current `CLUSTER_SECRET` has sealed. */
  readonly unreadable: number
}

interface Kept extends NumberedEvent {
  readonly outbox: string
  readonly sizeBytes: number
  /** URLs to which it is not settled. */
  readonly urls: Set<string>
  /** Whether Redis may have it. */
  isSent: boolean
}

/** Calling order: `look` twice a second, `flush` before other nodes may take the outbox. */
export class WebhookOutbox implements EventOutbox {
  readonly #options: WebhookOutboxOptions
  /** Unsettled events by id. */
  readonly #events = new Map<string, Kept>()
  /** Events that Redis has not acknowledged. */
  readonly #waiting = new Set<Kept>()
  /** Settled events that Redis may have: outboxes by id. */
  readonly #over = new Map<string, string>()
  /** Events whose place in the outbox depends on a response that has not come. */
  readonly #expected = new Set<string>()
  /** Ids of `stream.stopped` that this node has delivered, or delivers. */
  readonly #ends = new LRUCache<string, true>({ max: MAX_KNOWN_ENDS })
  readonly #counts = { unkept: 0, found: 0, unreadable: 0 }
  #sizeBytes = 0
  #number = 0
  /** Id of the server that has answered last. */
  #server: string | undefined
  #updating: Promise<void> | undefined

  constructor(options: WebhookOutboxOptions) {
    this.#options = options
  }

  /** Keeps an event, but for numbers of viewers: the next one replaces them. */
  keep(event: AddressedEvent): void {
    if (event.type === 'stream.viewers') return
    const sizeBytes = sizeOf(event)
    const isFull = this.#events.size >= MAX_EVENTS || this.#sizeBytes + sizeBytes > MAX_BYTES
    if (isFull || sizeBytes > MAX_EVENT_BYTES) {
      this.#counts.unkept++
      return
    }
    this.#waiting.add(this.#add({ event, number: this.#number++ }, this.#options.node))
    void this.#update()
  }

  settle(eventId: string, url: string): void {
    const kept = this.#events.get(eventId)
    if (kept === undefined) return
    kept.urls.delete(url)
    if (kept.urls.size > 0) return
    this.#events.delete(eventId)
    this.#waiting.delete(kept)
    this.#sizeBytes -= kept.sizeBytes
    if (!kept.isSent) return
    this.#over.set(eventId, kept.outbox)
    void this.#update()
  }

  /**
   * Announces the end of a run, unless another event has done so, or the registry has only lost that this node has.
   *
   * @throws {MillraceError} `REGISTRY_UNAVAILABLE`; an event that Redis has taken nevertheless is found later
   */
  async announce(run: RunName, { urls, event }: EndEvent): Promise<boolean> {
    const { node, outboxes, webhooks } = this.#options
    const id = idOfEnd(run)
    const isKnown = this.#ends.has(id)
    if (urls.length === 0 || isKnown) return (await outboxes.announce(run, node)) && !isKnown
    const numbered = { event: webhooks.address(urls, { ...event, id }), number: this.#number++ }
    this.#expected.add(id)
    try {
      const isAnnounced = await outboxes.announce(run, node, this.#seal(numbered))
      if (isAnnounced) this.#deliver(numbered, node)
      return isAnnounced
    } finally {
      this.#expected.delete(id)
    }
  }

  /** Takes what nodes that are gone have left, and announces ends of runs in their place. */
  async look(): Promise<void> {
    const { node, outboxes, logger } = this.#options
    // One that is under way may have been answered before a node was gone.
    await this.#updating
    await this.#update()
    try {
      for (const run of await outboxes.unannounced(node, MAX_ENDS)) {
        const { streamId, reason } = run
        if (await this.announce(run, this.#describeEnd(run))) {
          logger.child({ stream_id: streamId }).info({ reason }, 'stream stopped without its owner')
        }
      }
    } catch {
      // The next round tries again.
    }
  }

  report(): OutboxReport {
    const waiting = this.#waiting.size
    return { ...this.#counts, waiting, kept: this.#events.size - waiting }
  }

  /** Leaves all that is not delivered to other nodes. */
  async flush(timeoutMs: number): Promise<void> {
    const { timers } = this.#options
    await withTimeout(this.#update(), timeoutMs, timers).catch(() => undefined)
    const dropped = this.#waiting.size
    if (dropped > 0) new DeliveryLog(this.#options.logger).logDropsAtClose(dropped)
  }

  /** Describes the end of a run whose owner is gone, and with it the totals. */
  #describeEnd({ streamId, reason, webhookUrls }: EndedRun): EndEvent {
    const event = endEvent({ id: streamId, status: 'STOPPED' }, reason, NO_TOTALS)
    return { event, urls: webhookUrls ?? this.#options.webhookUrls }
  }

  /** Tells Redis what has changed; what fails is told in the next round. */
  #update(): Promise<void> {
    return (this.#updating ??= this.#exchangeAll().finally(() => (this.#updating = undefined)))
  }

  async #exchangeAll(): Promise<void> {
    // Changes of one turn of the event loop are one call.
    await Promise.resolve()
    try {
      do await this.#exchange()
      while (this.#waiting.size + this.#over.size > 0)
    } catch {
      // The next round tries again.
    }
  }

  async #exchange(): Promise<void> {
    const { node, outboxes } = this.#options
    const sent = [...this.#waiting].slice(0, MAX_NEW)
    const over = [...this.#over].slice(0, MAX_OVER).map(([id, outbox]) => ({ id, outbox }))
    for (const kept of sent) kept.isSent = true
    const events = sent.map((kept) => this.#seal(kept))
    const { server, counts } = await outboxes.update(node, { events, over })
    for (const kept of sent) this.#waiting.delete(kept)
    for (const { id } of over) this.#over.delete(id)
    for (const [outbox, count] of counts) {
      if (count > this.#countKnown(outbox)) await this.#read(outbox)
    }
    this.#restore(server, counts.get(node) ?? 0)
  }

  /** Puts all events into the outbox again if Redis has lost some, or may have lost some and have as many that are over. */
  #restore(server: string, count: number): void {
    const { node } = this.#options
    const isSame = server === (this.#server ?? server)
    this.#server = server
    const own = [...this.#events.values()].filter(({ outbox }) => outbox === node)
    const acknowledged = own.filter((kept) => !this.#waiting.has(kept))
    if (isSame && count >= acknowledged.length) return
    for (const kept of acknowledged) this.#waiting.add(kept)
  }

  /** Number of events that Redis may have in an outbox, as far as this node knows. */
  #countKnown(outbox: string): number {
    const events = [...this.#events.values()].filter(
      (kept) => kept.outbox === outbox && kept.isSent,
    )
    return events.length + [...this.#over.values()].filter((each) => each === outbox).length
  }

  /** Delivers what this node has not seen, in the order of the node where it happened. */
  async #read(outbox: string): Promise<void> {
    const { outboxes, clock } = this.#options
    const secrets = this.#options.readClusterSecrets()
    const found: NumberedEvent[] = []
    for (const stored of await outboxes.read(outbox)) {
      const { id } = stored
      if (this.#events.has(id) || this.#over.has(id) || this.#expected.has(id)) continue
      const numbered = openEvent(stored, secrets, clock)
      if (numbered !== undefined) found.push(numbered)
      else {
        this.#counts.unreadable++
        this.#over.set(id, outbox)
      }
    }
    this.#counts.found += found.length
    for (const each of found.toSorted((a, b) => a.number - b.number)) this.#deliver(each, outbox)
  }

  #deliver(numbered: NumberedEvent, outbox: string): void {
    const { id, type } = numbered.event
    if (type === 'stream.stopped') this.#ends.set(id, true)
    this.#add(numbered, outbox).isSent = true
    this.#options.webhooks.deliver(numbered.event)
  }

  #add(numbered: NumberedEvent, outbox: string): Kept {
    const { event } = numbered
    const sizeBytes = sizeOf(event)
    const kept = { ...numbered, outbox, sizeBytes, urls: new Set(event.urls), isSent: false }
    this.#events.set(event.id, kept)
    this.#sizeBytes += sizeBytes
    return kept
  }

  #seal(numbered: NumberedEvent): OutboxEvent {
    return sealEvent(numbered, this.#options.readClusterSecrets()[0]!)
  }
}

/** Id of the event that a run has ended, whichever node announces it: a UUID of version 8 (RFC 9562). */
function idOfEnd({ streamId, run }: RunName): string {
  const hash = createHash('sha256').update(`${streamId} ${run}`).digest('hex')
  const at = (from: number, to: number) => hash.slice(from, to)
  return `${at(0, 8)}-${at(8, 12)}-8${at(13, 16)}-8${at(17, 20)}-${at(20, 32)}`
}

function sizeOf({ body, urls }: AddressedEvent): number {
  return body.length + urls.join().length
}
