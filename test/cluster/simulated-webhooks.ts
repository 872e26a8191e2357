/**
 * Webhooks of a simulated cluster: the real outbox of each node over the model, in virtual time, with receivers that fail.
 * What they receive is judged.
 *
 * @module
 */
import type { Clock } from '../../src/timing/clock.ts'
import type { RunName } from '../../src/cluster/registry/outboxes.ts'
import { unavailable } from '../../src/cluster/registry/redis.ts'
import { createLogger } from '../../src/logger.ts'
import { WebhookOutbox } from '../../src/cluster/node/outbox/webhook-outbox.ts'
import {
  encodeEvent,
  type WebhookEvent,
  type WebhookType,
  type AddressedEvent,
} from '../../src/webhook/event.ts'
import type { Random } from '../support/random.ts'
import type { RegistryModel } from './registry/model.ts'

const URLS = ['http://one/', 'http://two/'] as const
const ROUND_MS = 500
const RETRY_MS = { first: 1000, max: 8000 }
/** Time in which a node whose lease has begun gets its outbox back. */
const BACK_MS = 4000

const logger = createLogger('silent')

/** What the webhooks have of the simulation. */
export interface SimulatedWorld {
  readonly random: Random
  readonly model: RegistryModel
  readonly nowMs: () => number
  /** Time by the clock of Redis. */
  readonly redisMs: () => number
  /** Which server Redis is: a failover has another one. */
  readonly server: () => string
  readonly at: (delayMs: number, run: () => void) => void
  readonly count: (name: string, what?: string) => void
  readonly fail: (what: string) => void
}

/** A node, as its webhooks need it. */
export interface WebhookNode {
  readonly name: string
  readonly isDead: () => boolean
  /** Runs code of the node once it is awake. */
  readonly on: (run: () => void) => void
  /** Asks Redis; `answer` gets undefined if there is no reply in time. */
  readonly call: <T>(ask: () => T, answer: (reply?: T) => void) => void
}

/** An event that was told to a node, or that an end has become. */
interface Told {
  readonly event: AddressedEvent
  readonly node: string
  readonly toldPlace: number
  /** When the node knew it: that Redis has taken an end, it learns later. */
  place: number
  readonly atMs: number
  /** URLs that have it. */
  readonly received: Map<string, { readonly place: number; readonly by: string }>
  readonly contents: Set<string>
  /** Why it need not be delivered. */
  isLost: boolean
}

export class SimulatedWebhooks {
  readonly #world: SimulatedWorld
  readonly #nodes = new Map<string, NodeWebhooks>()
  readonly #told = new Map<string, Told>()
  readonly #away = new Set<string>()
  #places = 0
  #hasFailedOver = false
  /** Whether promises may have to be settled before time goes on. */
  isBusy = false

  constructor(world: SimulatedWorld) {
    this.#world = world
  }

  boot(node: WebhookNode): void {
    this.#nodes.set(node.name, new NodeWebhooks(node, this.#world, this))
  }

  tell(node: string, streamId: string, type: WebhookType): void {
    this.isBusy = true
    this.#nodes.get(node)!.tell({ type, streamId, data: {} })
  }

  announce(node: string, run: RunName): void {
    this.isBusy = true
    this.#nodes.get(node)!.announce(run)
  }

  /** A receiver is away for a while. */
  fault(): void {
    const { random, at, count } = this.#world
    const url = URLS[random.below(URLS.length)]!
    const ms = 500 + random.below(25_000)
    count('receivers away', `${url} for ${ms} ms`)
    this.#away.add(url)
    at(ms, () => this.#away.delete(url))
  }

  isAway(url: string): boolean {
    return this.#away.has(url)
  }

  note(event: AddressedEvent, node: string): void {
    const known = this.#told.get(event.id)
    if (known !== undefined) {
      known.contents.add(contentOf(event))
      // What a failover has lost is told again.
      known.isLost = false
      return
    }
    const [place, atMs] = [this.#places++, this.#world.nowMs()]
    const told = { event, node, toldPlace: place, place, atMs, received: new Map(), isLost: false }
    this.#told.set(event.id, { ...told, contents: new Set([contentOf(event)]) })
  }

  /** The node that has announced an end knows that Redis has taken it. */
  learn({ id, type }: AddressedEvent, node: string): void {
    const told = this.#told.get(id)
    const isNew = type === 'stream.stopped' && told?.node === node && told.received.size === 0
    if (isNew) told.place = this.#places++
  }

  receive(url: string, { id }: AddressedEvent, by: string): void {
    const told = this.#told.get(id)
    if (told === undefined) return this.#world.fail(`${by} delivers ${id}, which nobody has told`)
    if (told.received.has(url)) this.#world.count('events received again')
    else told.received.set(url, { place: this.#places++, by })
    this.#world.count('events received')
  }

  /** A node reads an outbox. */
  judgeRead(outbox: string, by: string, ids: readonly string[]): void {
    const { model, nowMs, fail } = this.#world
    if (outbox === by || ids.length === 0) return
    const holder = model.outboxes.holders.get(outbox)
    const isOther = holder !== by && holder !== outbox
    if (isOther && nowMs() - this.#leaseSinceMs(by) > BACK_MS) {
      fail(`${by} reads the outbox of ${outbox}, which ${holder} has`)
    }
    for (const id of ids) {
      const told = this.#told.get(id)
      if (told?.node === outbox && told.atMs - this.#leaseSinceMs(outbox) > BACK_MS) {
        fail(`${by} finds ${id}, though ${outbox} has its lease`)
      }
    }
  }

  /** What the node that dies has not been able to put into Redis is lost with it. */
  kill(node: string): void {
    const last = this.#nodes.get(node)!.acknowledged
    for (const [id, told] of this.#told) {
      if (told.node !== node || told.isLost || isDelivered(told) || this.#isKept(told)) continue
      if (last.server === this.#world.server() && told.atMs < last.sentMs) {
        this.#world.fail(`Redis does not have ${id} of ${node}`)
      }
      told.isLost = true
      this.#world.count('events lost with a node', id)
    }
  }

  /** What another server does not know, and no node that lives, is lost. */
  failOver(): void {
    this.#hasFailedOver = true
    for (const [id, told] of this.#told) {
      const hasNode = !this.#nodes.get(told.node)!.isDead
      if (hasNode || told.isLost || isDelivered(told) || this.#isKept(told)) continue
      told.isLost = true
      this.#world.count('events lost by a failover', id)
    }
  }

  judgeEnd(): void {
    const { model, fail, count } = this.#world
    for (const told of this.#told.values()) {
      const { event, contents, node } = told
      const what = `${event.type} ${event.id} of ${node}`
      if (!told.isLost && !isDelivered(told)) fail(`${what} is not delivered`)
      if (contents.size === 1) continue
      count('ends told again')
      if (!this.#hasFailedOver) fail(`${what} has two contents`)
    }
    this.#judgeOrder()
    for (const run of model.outboxes.ends.keys()) fail(`nobody announces the end of ${run}`)
    for (const [name, { texts }] of model.outboxes.outboxes) {
      fail(`the outbox of ${name} has ${[...texts.keys()].join(' ')}`)
    }
    for (const node of this.#nodes.values()) {
      const { kept, waiting } = node.report()
      if (!node.isDead && kept + waiting > 0) fail(`${node.name} keeps ${kept} and ${waiting}`)
    }
  }

  /** Events of a stream that happen at one node come in order at each URL. */
  #judgeOrder(): void {
    const last = new Map<string, Told>()
    for (const told of [...this.#told.values()].toSorted((one, other) => one.place - other.place)) {
      for (const url of URLS) {
        const own = told.received.get(url)
        if (own === undefined) continue
        const key = `${told.node} ${told.event.streamId} ${url}`
        const before = last.get(key)
        const earlier = before?.received.get(url)
        // A node that is cut off delivers its events beside the one that has taken its outbox.
        const isAlone = earlier?.by === own.by || this.#nodes.get(told.node)!.isDead
        const isLate = earlier !== undefined && earlier.place > own.place
        // Who takes an outbox delivers it in the order in which it was told.
        const isInOrder = told.toldPlace < (before?.place ?? Infinity)
        if (isLate && !isInOrder && isAlone && !this.#hasFailedOver) {
          this.#world.fail(`${told.event.id} overtakes ${before!.event.id} at ${url}`)
        }
        if (earlier === undefined || earlier.place < own.place) last.set(key, told)
      }
    }
  }

  /** Since when a node has held its lease of this server; Infinity without one. */
  #leaseSinceMs(node: string): number {
    const { model, server, nowMs, redisMs } = this.#world
    const lease = model.leases.get(node)
    if (lease === undefined || lease.server !== server()) return Infinity
    return lease.sinceMs - redisMs() + nowMs()
  }

  #isKept({ event }: Told): boolean {
    const { outboxes } = this.#world.model.outboxes
    return [...outboxes.values()].some(({ texts }) => texts.has(event.id))
  }
}

/** Outbox and dispatcher of a node. */
class NodeWebhooks {
  readonly #node: WebhookNode
  readonly #world: SimulatedWorld
  readonly #webhooks: SimulatedWebhooks
  readonly #outbox: WebhookOutbox
  readonly #queues = new Map<string, AddressedEvent[]>()
  /** Latest update of the outbox that Redis has answered. */
  acknowledged = { sentMs: -Infinity, server: '' }
  #told = 0

  constructor(node: WebhookNode, world: SimulatedWorld, webhooks: SimulatedWebhooks) {
    this.#node = node
    this.#world = world
    this.#webhooks = webhooks
    const { nowMs, model, random, at } = world
    const clock: Clock = { nowUs: () => nowMs() * 1000, wallMs: () => nowMs() }
    const { outboxes } = model
    const { name } = node
    this.#outbox = new WebhookOutbox({
      ...{ node: name, clock, logger },
      outboxes: {
        update: async (...args) => {
          const sentMs = nowMs()
          const reply = await this.#ask(() => outboxes.update(...args))
          this.acknowledged = { sentMs, server: reply.server }
          return reply
        },
        read: (outbox) =>
          this.#ask(() => {
            const events = outboxes.read(outbox)
            const ids = events.map(({ id }) => id)
            webhooks.judgeRead(outbox, name, ids)
            return events
          }),
        unannounced: (...args) => this.#ask(() => outboxes.unannounced(...args)),
        announce: (run, by, event) =>
          this.#ask(() => {
            const isAnnounced = outboxes.announce(run, by, event)
            if (isAnnounced && event !== undefined) webhooks.note(this.#ends.get(event.id)!, name)
            return isAnnounced
          }),
      },
      webhookUrls: URLS,
      readClusterSecrets: () => ['c'.repeat(32)],
      webhooks: {
        address: (urls, event) => {
          const addressed = this.#address(urls, event)
          this.#ends.set(addressed.id, addressed)
          return addressed
        },
        deliver: (event) => {
          webhooks.learn(event, name)
          this.#deliver(event)
        },
      },
    })
    const look = () => {
      webhooks.isBusy = true
      void this.#outbox.look().finally(() => at(ROUND_MS + random.below(200), round))
    }
    const round = () => node.on(look)
    at(random.below(ROUND_MS), round)
  }

  /** Events of ends, by id, that the node announces or has announced. */
  readonly #ends = new Map<string, AddressedEvent>()

  get name(): string {
    return this.#node.name
  }

  get isDead(): boolean {
    return this.#node.isDead()
  }

  report() {
    return this.#outbox.report()
  }

  tell(event: WebhookEvent): void {
    const addressed = this.#address(URLS, { ...event, id: `${this.name}-${this.#told++}` })
    this.#webhooks.note(addressed, this.name)
    this.#outbox.keep(addressed)
    this.#deliver(addressed)
  }

  /** As `OwnerWrites` does: again until the registry answers. */
  announce(run: RunName): void {
    const data = { totals: 1 }
    const event: WebhookEvent = { type: 'stream.stopped', streamId: run.streamId, data }
    this.#webhooks.isBusy = true
    this.#outbox.announce(run, { urls: URLS, event }).catch(() => {
      this.#world.at(500, () => this.#node.on(() => this.announce(run)))
    })
  }

  #address(urls: readonly string[], event: WebhookEvent): AddressedEvent {
    const { type, streamId, id = '' } = event
    const createdAt = new Date(this.#world.nowMs())
    const body = encodeEvent(event, id, createdAt)
    return { type, streamId, id, urls, body, createdUs: this.#world.nowMs() * 1000 }
  }

  #ask<T>(call: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#node.call(call, (reply) => {
        this.#webhooks.isBusy = true
        if (reply === undefined) reject(unavailable())
        else resolve(reply)
      })
    })
  }

  #deliver(event: AddressedEvent): void {
    for (const url of event.urls) {
      const queue = this.#queues.get(url) ?? []
      this.#queues.set(url, queue)
      if (queue.push(event) === 1) this.#attempt(url, queue, RETRY_MS.first)
    }
  }

  #attempt(url: string, queue: AddressedEvent[], retryMs: number): void {
    const { random, at } = this.#world
    const later = (delayMs: number, run: () => void) => at(delayMs, () => this.#node.on(run))
    later(1 + random.below(50), () => {
      const [event] = queue as [AddressedEvent]
      const isReceived = !this.#webhooks.isAway(url)
      if (isReceived) this.#webhooks.receive(url, event, this.name)
      // An answer may be lost.
      if (!isReceived || random.chance(0.02)) {
        const nextMs = Math.min(2 * retryMs, RETRY_MS.max)
        return later(retryMs, () => this.#attempt(url, queue, nextMs))
      }
      this.#webhooks.isBusy = true
      this.#outbox.settle(event.id, url)
      queue.shift()
      if (queue.length > 0) this.#attempt(url, queue, RETRY_MS.first)
    })
  }
}

function isDelivered({ received }: Told): boolean {
  return received.size === URLS.length
}

function contentOf({ body }: AddressedEvent): string {
  return JSON.stringify((JSON.parse(body.toString()) as { readonly data: unknown }).data)
}
