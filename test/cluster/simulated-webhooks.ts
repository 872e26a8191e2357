/**
 * Webhooks of a simulated cluster: what its nodes deliver, to receivers that fail, in virtual time. What they receive is judged.
 *
 * @module
 */
import type { NodeLinks } from '../../src/cluster/node/node-links.ts'
import type { WebhookDispatcher } from '../../src/webhook/dispatcher.ts'
import { encodeEvent, type AddressedEvent, type WebhookEvent } from '../../src/webhook/event.ts'
import type { Random } from '../support/random.ts'
import type { RegistryModel } from '../../src/cluster/registry/registry-model.ts'
import { WEBHOOK_URLS as URLS, type SimulatedNode } from './simulated-node.ts'

const RETRY_MS = { first: 1000, max: 8000 }
/** Time in which a node whose lease has begun gets its outbox back. */
const BACK_MS = 4000

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
  /** Asks Redis. */
  readonly ask: <T>(node: SimulatedNode, call: () => T) => Promise<T>
  readonly count: (name: string, what?: string) => void
  readonly fail: (what: string) => void
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
  readonly #dispatchers = new Map<string, SimulatedDispatcher>()
  readonly #told = new Map<string, Told>()
  readonly #away = new Set<string>()
  #places = 0
  #hasFailedOver = false

  constructor(world: SimulatedWorld) {
    this.#world = world
  }

  boot(node: SimulatedNode): SimulatedDispatcher {
    const dispatcher = new SimulatedDispatcher(node, this.#world, this)
    this.#dispatchers.set(node.name, dispatcher)
    return dispatcher
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
    const last = this.#dispatchers.get(node)!.acknowledged
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
      const hasNode = !this.#isDead(told.node)
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
    for (const { node } of this.#dispatchers.values()) {
      const { kept, waiting } = node.member.outbox.report()
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
        const isAlone = earlier?.by === own.by || this.#isDead(told.node)
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

  #isDead(node: string): boolean {
    return this.#dispatchers.get(node)!.node.isDead
  }

  #isKept({ event }: Told): boolean {
    const { outboxes } = this.#world.model.outboxes
    return [...outboxes.values()].some(({ texts }) => texts.has(event.id))
  }
}

/** Dispatcher of a node. */
export class SimulatedDispatcher implements WebhookDispatcher {
  readonly node: SimulatedNode
  readonly outboxes: NodeLinks['outboxes']
  /** Latest update of the outbox that Redis has answered. */
  acknowledged = { sentMs: -Infinity, server: '' }
  readonly #world: SimulatedWorld
  readonly #webhooks: SimulatedWebhooks
  readonly #queues = new Map<string, AddressedEvent[]>()
  /** Events of ends, by id, that the node announces or has announced. */
  readonly #ends = new Map<string, AddressedEvent>()
  #events = 0
  #isClosing = false

  constructor(node: SimulatedNode, world: SimulatedWorld, webhooks: SimulatedWebhooks) {
    this.node = node
    this.#world = world
    this.#webhooks = webhooks
    const { nowMs, ask } = world
    const { outboxes } = world.model
    const { name } = node
    this.outboxes = {
      update: async (...args) => {
        const sentMs = nowMs()
        const reply = await ask(node, () => outboxes.update(...args))
        this.acknowledged = { sentMs, server: reply.server }
        return reply
      },
      read: (outbox) =>
        ask(node, () => {
          const events = outboxes.read(outbox)
          const ids = events.map(({ id }) => id)
          webhooks.judgeRead(outbox, name, ids)
          return events
        }),
      unannounced: (...args) => ask(node, () => outboxes.unannounced(...args)),
      announce: (run, by, event) =>
        ask(node, () => {
          const isAnnounced = outboxes.announce(run, by, event)
          if (isAnnounced && event !== undefined) webhooks.note(this.#ends.get(event.id)!, name)
          return isAnnounced
        }),
    }
  }

  /** Events that a rate limit may suppress are none to be judged. */
  send(urls: readonly string[], event: WebhookEvent): void {
    if (event.rateLimitKey !== undefined) return
    const addressed = this.address(urls, event)
    this.#webhooks.note(addressed, this.node.name)
    this.node.member.outbox.keep(addressed)
    this.deliver(addressed)
  }

  address(urls: readonly string[], event: WebhookEvent): AddressedEvent {
    const { type, streamId, id = `${this.node.name}-${this.#events++}` } = event
    const nowMs = this.#world.nowMs()
    const body = encodeEvent(event, id, new Date(nowMs))
    const addressed = { type, streamId, id, urls, body, createdUs: nowMs * 1000 }
    if (type === 'stream.stopped') this.#ends.set(id, addressed)
    return addressed
  }

  deliver(event: AddressedEvent): void {
    if (this.#isClosing) return
    this.#webhooks.learn(event, this.node.name)
    for (const url of event.urls) {
      const queue = this.#queues.get(url) ?? []
      this.#queues.set(url, queue)
      if (queue.push(event) === 1) this.#attempt(url, queue, RETRY_MS.first)
    }
  }

  check(): void {}

  stats() {
    return { delivered: 0, failed: 0, dropped: 0, suppressed: 0, pending: 0 }
  }

  async close(): Promise<void> {
    this.#isClosing = true
  }

  #attempt(url: string, queue: AddressedEvent[], retryMs: number): void {
    const { random, at } = this.#world
    const later = (delayMs: number, run: () => void) => at(delayMs, () => this.node.run(run))
    later(1 + random.below(50), () => {
      if (this.#isClosing) return
      const [event] = queue as [AddressedEvent]
      const isReceived = !this.#webhooks.isAway(url)
      if (isReceived) this.#webhooks.receive(url, event, this.node.name)
      // An answer may be lost.
      if (!isReceived || random.chance(0.02)) {
        const nextMs = Math.min(2 * retryMs, RETRY_MS.max)
        return later(retryMs, () => this.#attempt(url, queue, nextMs))
      }
      this.node.member.outbox.settle(event.id, url)
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
