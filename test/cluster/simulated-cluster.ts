/**
 * A cluster in virtual time: nodes, edges, encoders, webhooks and a Redis (its model), with faults, from a seed. What its nodes do is what
 * nodes of a cluster have to do with the registry; what its edges see is judged.
 *
 * @module
 */
import type { Advance, Advanced } from '../../src/cluster/registry/registry.ts'
import type { Handover } from '../../src/cluster/registry/registered.ts'
import { createRandom, type Random } from '../support/random.ts'
import { SEQUENCE_CLOCK, RegistryModel } from './registry/model.ts'
import { SimulatedWebhooks } from './simulated-webhooks.ts'

const START_MS = Date.UTC(2026, 11, 1)
const LEASE_MS = 2000
const TIMEOUT_MS = 500
const GRACE_MS = 6000
const SEGMENT_MS = 1000
const WINDOW = 4
/** Numbers that a node may have used of a stream that it does not know any more. */
const SKIP = 1000

const FAULTS_UNTIL_MS = 40_000
/** The last stop that a start follows is so long before the judgement that an encoder is back by then. */
const RESTARTS_UNTIL_MS = 48_000
const ENCODERS_UNTIL_MS = 62_000
const END_MS = 90_000

const IDS = ['x', 'y']
const INGEST = 3
const EDGES = 2

interface Segment {
  readonly uri: string
  readonly discontinuity: number
  readonly isGap: boolean
}

/** A stream that a node owns, as far as the node knows. */
interface Hold {
  readonly id: string
  readonly fence: number
  readonly epoch: string
  readonly run: number
  window: Map<number, Segment>
  first: number
  media: number
  discontinuity: number
  /** Numbers below are reserved. */
  reserved: number
  /** Number of the segment that is open. */
  open: number | undefined
  boundaryMs: number
  status: 'READY' | 'STREAMING' | 'INTERRUPTED'
  sinceMs: number
  isYielded: boolean
  serial: number
  isChanged: boolean
  isCalling: boolean
  /** Entries that are not acknowledged, by the serial of the first call that has them. */
  readonly dirty: Map<number, number>
}

interface Node {
  readonly name: string
  readonly place: number
  isDead: boolean
  pausedUntilMs: number
  backlog: (() => void)[]
  /** When the last acknowledged renewal was sent. */
  renewedMs: number
  leaseSinceMs: number | undefined
  readonly holds: Map<string, Hold>
  readonly claiming: Set<string>
}

interface Edge {
  readonly place: number
  readonly sources: Map<string, string>
  readonly served: Map<string, { fence: number; last: number; discontinuity: number }>
  readonly asking: Set<string>
}

export interface Verdict {
  readonly violations: readonly string[]
  /** What has happened, for tests that it happens. */
  readonly counts: Readonly<Record<string, number>>
}

/** @param trace  gets each call of the registry and what else happens */
export function simulate(seed: number, trace?: (line: string) => void): Promise<Verdict> {
  return new Cluster(seed, trace).run()
}

class Cluster {
  readonly #random: Random
  readonly #model: RegistryModel
  /** Separate source, so that what webhooks do leaves the rest of a seed as it is. */
  readonly #webhookRandom: Random
  readonly #webhooks: SimulatedWebhooks
  readonly #violations: string[] = []
  readonly #counts: Record<string, number> = {}
  #nowMs = 0
  #order = 0
  readonly #events: { atMs: number; order: number; run: () => void }[] = []
  #clockSkewMs = 0
  #servers = 0
  readonly #redisFaults = new Set<'away' | 'failover'>()
  #isFailingOver = false
  #hasLostWrites = false
  readonly #cut = new Set<string>()
  readonly #nodes: Node[] = []
  readonly #byName = new Map<string, Node>()
  readonly #edges: Edge[] = []
  /** Node that the encoder of a stream is connected to. */
  readonly #encoders = new Map<
    string,
    { node?: Node; isCalling: boolean; silentSinceMs?: number }
  >()
  readonly #fences = new Map<string, string>()
  readonly #seen = new Map<string, string>()

  readonly #trace: ((line: string) => void) | undefined

  constructor(seed: number, trace?: (line: string) => void) {
    this.#random = createRandom(seed)
    this.#trace = trace
    this.#model = new RegistryModel({
      nowMs: () => START_MS + this.#nowMs + this.#clockSkewMs,
      server: () => `s${this.#servers}`,
      leaseMs: LEASE_MS,
      settleMs: 2 * LEASE_MS,
      sequenceClock: SEQUENCE_CLOCK,
    })
    this.#webhookRandom = createRandom(seed + 0x5eed)
    this.#webhooks = new SimulatedWebhooks({
      random: this.#webhookRandom,
      model: this.#model,
      nowMs: () => this.#nowMs,
      redisMs: () => START_MS + this.#nowMs + this.#clockSkewMs,
      server: () => `s${this.#servers}`,
      at: (delayMs, run) => this.#at(delayMs, run),
      count: (name, what) => this.#count(name, what),
      fail: (what) => this.#fail(what),
    })
  }

  async run(): Promise<Verdict> {
    for (let place = 0; place < INGEST; place++) this.#boot(place)
    for (let place = 0; place < EDGES; place++) {
      const edge: Edge = { place, sources: new Map(), served: new Map(), asking: new Set() }
      this.#edges.push(edge)
      this.#every(300, () => this.#poll(edge))
    }
    for (const id of IDS) {
      this.#encoders.set(id, { isCalling: false })
      this.#at(this.#random.below(3000), () => this.#start(id))
      this.#every(1000, () => this.#encode(id))
    }
    this.#planFaults()
    this.#at(FAULTS_UNTIL_MS, () => this.#heal())
    this.#at(ENCODERS_UNTIL_MS - 1, () => this.#judgeLife())
    this.#at(END_MS - 1, () => this.#judgeEnd())
    while (this.#nowMs < END_MS) {
      const event = this.#next()
      if (event === undefined) break
      this.#nowMs = event.atMs
      event.run()
      if (!this.#webhooks.isBusy) continue
      this.#webhooks.isBusy = false
      await settled()
    }
    return { violations: this.#violations, counts: this.#counts }
  }

  // Time

  #at(delayMs: number, run: () => void): void {
    const event = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    const heap = this.#events
    let at = heap.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isBefore(event, heap[above]!)) break
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = event
  }

  #next() {
    const heap = this.#events
    const first = heap[0]
    const last = heap.pop()
    if (heap.length === 0 || last === undefined) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++
      if (!isBefore(heap[below]!, last)) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = last
    return first
  }

  #every(ms: number, run: () => void, isOver: () => boolean = () => false): void {
    const again = (): void => {
      if (isOver()) return
      run()
      this.#at(ms + this.#random.below(ms >> 2), again)
    }
    this.#at(this.#random.below(ms), again)
  }

  #everyOf(node: Node, ms: number, run: () => void): void {
    this.#every(
      ms,
      () => this.#on(node, run),
      () => node.isDead,
    )
  }

  /** Runs code of a node, once it is awake. */
  #on(node: Node, run: () => void): void {
    if (node.isDead) return
    if (node.pausedUntilMs > this.#nowMs) node.backlog.push(run)
    else run()
  }

  #count(name: string, what = ''): void {
    if (this.#trace !== undefined) this.#note(`${name} ${what}`)
    this.#counts[name] = (this.#counts[name] ?? 0) + 1
  }

  // Network

  #isCut(a: string, b: string): boolean {
    return this.#cut.has(`${a} ${b}`) || this.#cut.has(`${b} ${a}`)
  }

  /** A call of the registry: `answer` gets undefined if there is none in time. */
  #call<T>(
    from: string,
    ask: (model: RegistryModel) => T,
    answer: (reply?: T) => void,
    random = this.#random,
  ): void {
    let isOver = false
    const end = (reply?: T): void => {
      if (isOver) return
      isOver = true
      answer(reply)
    }
    const isSlow = random.chance(0.01)
    const delayMs = isSlow ? random.below(3000) : 1 + random.below(5)
    const backMs = random.chance(0.02) ? Infinity : 1 + random.below(5)
    const repeatMs = random.chance(0.02) ? random.below(4000) : Infinity
    this.#at(TIMEOUT_MS, () => end())
    if (this.#isCut(from, 'redis')) return
    const apply = (): T | undefined => {
      if (this.#redisFaults.size > 0 || this.#isCut(from, 'redis')) return undefined
      try {
        return ask(this.#trace === undefined ? this.#model : this.#traced(from))
      } catch {
        return undefined
      }
    }
    this.#at(delayMs, () => {
      const reply = apply()
      if (backMs < Infinity) this.#at(backMs, () => end(reply))
      if (repeatMs < Infinity) this.#at(repeatMs, apply)
    })
  }

  #traced(from: string): RegistryModel {
    return new Proxy(this.#model, {
      get:
        (model, name) =>
        (...args: unknown[]) => {
          const method = Reflect.get(model, name) as (...args: unknown[]) => unknown
          const reply = method.apply(model, args)
          this.#note(`${from} ${String(name)} ${JSON.stringify(args)}: ${JSON.stringify(reply)}`)
          return reply
        },
    })
  }

  #note(what: string): void {
    this.#trace?.(`${this.#nowMs} ${what}`)
  }

  #callOf<T>(node: Node, ask: (model: RegistryModel) => T, answer: (reply?: T) => void): void {
    this.#call(`n${node.place}`, ask, (reply) => this.#on(node, () => answer(reply)))
  }

  /** How one process finds another: `gone` if its machine refuses the connection. */
  #reach(from: string, node: Node | undefined): 'alive' | 'gone' | 'silent' {
    if (node === undefined) return 'silent'
    if (this.#isCut(from, `n${node.place}`)) return 'silent'
    if (node.isDead) return 'gone'
    return node.pausedUntilMs > this.#nowMs ? 'silent' : 'alive'
  }

  // Nodes

  #boot(place: number): void {
    const name = `${place}.${this.#order++}`
    const node: Node = {
      ...{
        name,
        place,
        isDead: false,
        pausedUntilMs: 0,
        backlog: [],
        renewedMs: -Infinity,
        leaseSinceMs: undefined,
      },
      ...{ holds: new Map(), claiming: new Set() },
    }
    this.#nodes[place] = node
    this.#byName.set(name, node)
    this.#everyOf(node, 500, () => this.#renew(node))
    this.#everyOf(node, 100, () => this.#publish(node))
    this.#everyOf(node, 700, () => this.#adopt(node))
    this.#everyOf(node, 2000, () => this.#reconcile(node))
    this.#webhooks.boot({
      name,
      isDead: () => node.isDead,
      on: (run) => this.#on(node, run),
      call: (ask, answer) => {
        const onReply: typeof answer = (reply) => this.#on(node, () => answer(reply))
        this.#call(`n${place}`, ask, onReply, this.#webhookRandom)
      },
    })
  }

  #renew(node: Node): void {
    const sentMs = this.#nowMs
    const record = { node: node.name, url: node.name }
    this.#callOf(
      node,
      (r) => r.renewNode(record),
      (reply) => {
        if (reply === undefined) return
        node.renewedMs = Math.max(node.renewedMs, sentMs)
        node.leaseSinceMs = reply
      },
    )
  }

  /** Finds dead neighbors, and takes the streams of lapsed ones. */
  #adopt(node: Node): void {
    const from = `n${node.place}`
    this.#callOf(
      node,
      (r) => r.listNodes(),
      (known = []) => {
        for (const each of known) {
          const isGone = this.#reach(from, this.#byName.get(each.node)) === 'gone'
          if (each.isLive && isGone)
            this.#callOf(
              node,
              (r) => r.leaveNode(each.node),
              () => undefined,
            )
        }
      },
    )
    this.#callOf(
      node,
      (r) => r.orphans(node.name, { limit: 10 }),
      (orphans = []) => {
        for (const { id, fence, owner, isGone } of orphans) {
          // An owner that lives without Redis serves its stream.
          if (this.#reach(from, this.#byName.get(owner.node)) === 'alive') continue
          this.#count(isGone ? 'adopted from the dead' : 'adopted from the silent')
          this.#claim(node, id, fence, 0)
        }
      },
    )
  }

  /** Finds what the node owns without knowing it, or no longer. */
  #reconcile(node: Node): void {
    this.#callOf(
      node,
      (r) => r.owned(node.name, { limit: 10 }),
      (owned) => {
        if (owned === undefined) return
        for (const { id, fence } of owned) {
          const hold = node.holds.get(id)
          // A lower fence than the node's own means that Redis has lost writes, which `advance` finds out.
          if (hold !== undefined && fence < hold.fence) hold.isChanged = true
          else if (hold?.fence !== fence) this.#claim(node, id, fence, SKIP)
        }
        for (const hold of node.holds.values()) {
          if (!owned.some(({ id }) => id === hold.id)) hold.isChanged = true
        }
      },
    )
  }

  #claim(node: Node, id: string, seenFence: number, skip: number, then?: () => void): void {
    if (node.claiming.has(id)) return
    node.claiming.add(id)
    const epoch = `${node.name}-${this.#order++}`
    this.#callOf(
      node,
      (r) => r.claim(id, { node: node.name, epoch, seenFence, skip }),
      (claimed) => {
        node.claiming.delete(id)
        if (claimed?.outcome !== 'granted') return
        const old = node.holds.get(id)
        if (old !== undefined && old.fence > claimed.stream.fence) return
        this.#noteFence(id, claimed.stream.fence, epoch)
        node.holds.set(id, this.#holdOf(claimed, old))
        then?.()
      },
    )
  }

  #holdOf({ stream, free, entries }: Handover, old: Hold | undefined): Hold {
    const window = new Map(entries.map((each) => [each.mediaSequence, each.value as Segment]))
    const media = Math.max(free.media, old?.media ?? 0)
    const end = Math.max(0, ...window.keys()) + 1
    if (media !== end) window.clear()
    return {
      ...{ id: stream.id, fence: stream.fence, epoch: stream.epoch, run: stream.run, window },
      first: window.size === 0 ? media : Math.min(...window.keys()),
      ...{ media, reserved: free.media, open: undefined, boundaryMs: 0 },
      discontinuity: Math.max(free.discontinuity, old?.discontinuity ?? 0),
      status: stream.status === 'READY' ? 'READY' : 'INTERRUPTED',
      ...{ sinceMs: this.#nowMs, isYielded: false, serial: 0, isChanged: true, isCalling: false },
      dirty: new Map(),
    }
  }

  #noteFence(id: string, fence: number, epoch: string): void {
    const key = `${id} ${fence}`
    const known = this.#fences.get(key)
    if (known !== undefined && known !== epoch) this.#fail(`two owners under the fence ${key}`)
    this.#fences.set(key, epoch)
  }

  #publish(node: Node): void {
    for (const hold of node.holds.values()) {
      const hasEncoder = this.#encoders.get(hold.id)!.node === node
      if (hasEncoder && hold.status !== 'STREAMING') this.#resume(node, hold)
      if (!hasEncoder && hold.status === 'STREAMING') {
        this.#closeSegment(hold)
        this.#setStatus(node, hold, 'INTERRUPTED')
      }
      if (hold.status === 'STREAMING' && this.#nowMs >= hold.boundaryMs) {
        this.#closeSegment(hold)
        this.#openSegment(hold)
      }
      const isOver = hold.status === 'INTERRUPTED' && this.#nowMs - hold.sinceMs > GRACE_MS
      if (hold.isCalling) continue
      // What the owner has used is known before its stream stops.
      if (hold.isChanged) this.#advance(node, hold)
      else if (isOver) this.#end(node, hold)
    }
  }

  #setStatus(node: Node, hold: Hold, status: 'STREAMING' | 'INTERRUPTED'): void {
    const type = status === 'STREAMING' ? 'stream.live' : 'stream.interrupted'
    this.#webhooks.tell(node.name, hold.id, type)
    hold.status = status
    hold.sinceMs = this.#nowMs
    hold.isChanged = true
  }

  /** An encoder has connected: what follows is another timeline. */
  #resume(node: Node, hold: Hold): void {
    this.#setStatus(node, hold, 'STREAMING')
    hold.discontinuity++
    hold.open = undefined
    // A number that was reserved ahead stays the gap that it is.
    this.#openSegment(hold)
  }

  #openSegment(hold: Hold): void {
    const ahead = hold.open !== undefined && hold.window.has(hold.open + 1)
    hold.open = ahead ? hold.open! + 1 : hold.media
    this.#put(hold, hold.open, true)
    // The number after it, so that a boundary needs no reply of Redis.
    this.#put(hold, hold.open + 1, true)
    hold.boundaryMs = this.#nowMs + SEGMENT_MS
    while (hold.open - hold.first >= WINDOW) hold.window.delete(hold.first++)
  }

  #closeSegment(hold: Hold): void {
    if (hold.open !== undefined) this.#put(hold, hold.open, false)
  }

  #put(hold: Hold, number: number, isGap: boolean): void {
    const uri = `${hold.epoch}-${number}`
    hold.window.set(number, { uri, discontinuity: hold.discontinuity, isGap })
    hold.dirty.set(number, hold.serial + 1)
    hold.media = Math.max(hold.media, number + 1)
    hold.isChanged = true
  }

  #advance(node: Node, hold: Hold): void {
    const serial = ++hold.serial
    hold.isChanged = false
    hold.isCalling = true
    const call: Advance = {
      ...{ serial, first: hold.first, status: hold.status, isYielded: hold.isYielded },
      entries: this.#entries(hold, [...hold.dirty.keys()]),
      free: { media: hold.media, discontinuity: hold.discontinuity + 1 },
      ...(node.leaseSinceMs !== undefined && { leaseSinceMs: node.leaseSinceMs }),
    }
    const by = { node: node.name, fence: hold.fence }
    this.#callOf(
      node,
      (r) => r.advance(hold.id, by, call),
      (reply) => {
        hold.isCalling = false
        if (reply?.outcome === 'lost') this.#restore(node, hold)
        else this.#advanced(node, hold, serial, call, reply)
      },
    )
  }

  #restore(node: Node, hold: Hold): void {
    this.#count('restored', `${hold.id} by ${node.name}`)
    const serial = ++hold.serial
    hold.isCalling = true
    const whole = {
      ...{ serial, first: hold.first, status: hold.status, epoch: hold.epoch, run: hold.run },
      entries: this.#entries(hold, [...hold.window.keys()]),
      free: { media: hold.media, discontinuity: hold.discontinuity + 1 },
      ...{ startedAtMs: 0, keyExpiresAtMs: START_MS + 7_200_000, options: {}, keys: {}, awayMs: 0 },
    }
    const by = { node: node.name, fence: hold.fence }
    this.#callOf(
      node,
      (r) => r.restore(hold.id, by, whole),
      (reply) => {
        hold.isCalling = false
        this.#advanced(node, hold, serial, whole, reply)
      },
    )
  }

  #advanced(node: Node, hold: Hold, serial: number, call: Advance, reply?: Advanced): void {
    if (node.holds.get(hold.id) !== hold) return
    if (reply === undefined || reply.outcome === 'lost') {
      hold.isChanged = true
    } else if (reply.outcome === 'accepted') {
      for (const [number, since] of hold.dirty) if (since <= serial) hold.dirty.delete(number)
      hold.reserved = Math.max(hold.reserved, call.free.media)
      if (reply.free.media > call.free.media && reply.free.media > hold.media) {
        this.#count('numbers skipped', `${hold.id} of ${node.name}`)
        hold.window.clear()
        hold.dirty.clear()
        hold.first = hold.media = reply.free.media
        hold.open = undefined
        hold.discontinuity = Math.max(hold.discontinuity, reply.free.discontinuity) + 1
        if (hold.status === 'STREAMING') this.#openSegment(hold)
      }
    } else {
      this.#count(reply.outcome, `${hold.id} of ${node.name}`)
      this.#drop(node, hold)
      if (reply.outcome === 'stopped') this.#announce(node, hold)
    }
  }

  #entries(hold: Hold, numbers: readonly number[]) {
    return numbers
      .toSorted((a, b) => a - b)
      .flatMap((mediaSequence) => {
        const value = hold.window.get(mediaSequence)
        return value === undefined ? [] : [{ mediaSequence, value }]
      })
  }

  #end(node: Node, hold: Hold): void {
    hold.isCalling = true
    const by = { node: node.name, fence: hold.fence }
    const options = { reason: 'grace-expired', run: hold.run, by, lingerMs: 1000 } as const
    this.#callOf(
      node,
      (r) => r.stop(hold.id, options),
      (reply) => {
        hold.isCalling = false
        if (reply === undefined) return
        if (reply.outcome === 'unknown') return this.#restore(node, hold)
        this.#drop(node, hold)
        if (reply.outcome !== 'stale') this.#announce(node, hold)
      },
    )
  }

  #announce(node: Node, { id: streamId, run }: Hold): void {
    this.#webhooks.announce(node.name, { streamId, run })
  }

  #drop(node: Node, hold: Hold): void {
    if (node.holds.get(hold.id) === hold) node.holds.delete(hold.id)
    const encoder = this.#encoders.get(hold.id)!
    if (encoder.node === node) delete encoder.node
  }

  // Clients

  #start(id: string): void {
    const node = this.#anyNode()
    if (node.isDead || node.pausedUntilMs > this.#nowMs) {
      this.#at(500, () => this.#start(id))
      return
    }
    let isAnswered = false
    this.#at(20_000, () => {
      if (!isAnswered && node.isDead) this.#start(id)
    })
    const keyExpiresAtMs = START_MS + 7_200_000 + this.#random.below(10_000)
    this.#callOf(
      node,
      (r) => r.start(id, { options: {}, keyExpiresAtMs }),
      (stream) => {
        isAnswered = true
        if (stream !== undefined) this.#webhooks.tell(node.name, id, 'stream.ready')
        if (stream === undefined && this.#nowMs < FAULTS_UNTIL_MS)
          this.#at(500, () => this.#start(id))
        // A key whose stream Redis has lost starts it again.
        if (stream !== undefined && this.#random.chance(0.3)) {
          this.#at(5000 + this.#random.below(20_000), () => this.#stopAndStart(id))
        }
      },
    )
  }

  #stopAndStart(id: string): void {
    if (this.#nowMs > RESTARTS_UNTIL_MS) return
    const node = this.#anyNode()
    this.#callOf(
      node,
      (r) => r.get(id),
      (stream) => {
        if (stream === undefined) return
        const options = { reason: 'api', run: stream.run, lingerMs: 1000 } as const
        this.#callOf(
          node,
          (r) => r.stop(id, options),
          () => {
            this.#at(1000 + this.#random.below(5000), () => this.#start(id))
          },
        )
      },
    )
  }

  #anyNode(): Node {
    return this.#nodes[this.#random.below(INGEST)]!
  }

  /** The encoder of a stream connects to any node, and gives up one that is silent for 3 s. */
  #encode(id: string): void {
    const encoder = this.#encoders.get(id)!
    const { node } = encoder
    const isOff = this.#nowMs >= ENCODERS_UNTIL_MS
    if (node !== undefined) {
      const isSilent = this.#reach(`encoder ${id}`, node) !== 'alive'
      if (!isSilent) delete encoder.silentSinceMs
      else encoder.silentSinceMs ??= this.#nowMs
      const silentMs = this.#nowMs - (encoder.silentSinceMs ?? this.#nowMs)
      const leaves = this.#nowMs < FAULTS_UNTIL_MS && this.#random.chance(0.03)
      if (!isOff && !node.isDead && silentMs < 3000 && !leaves) return
      delete encoder.node
      delete encoder.silentSinceMs
      return
    }
    if (isOff || encoder.isCalling) return
    const next = this.#anyNode()
    if (this.#reach(`encoder ${id}`, next) !== 'alive') return
    encoder.isCalling = true
    let isOver = false
    const end = (accepted: boolean): void => {
      if (isOver) return
      isOver = true
      encoder.isCalling = false
      if (accepted && !next.isDead && next.holds.has(id)) encoder.node = next
    }
    this.#at(2500, () => end(false))
    this.#on(next, () => this.#accept(next, id, end))
  }

  /** The accept hook. */
  #accept(node: Node, id: string, end: (accepted: boolean) => void): void {
    // Another node may own by now what this one has yielded.
    if (node.holds.get(id)?.isYielded === false) {
      end(true)
      return
    }
    this.#callOf(
      node,
      (r) => r.get(id),
      (stream) => {
        if (stream === undefined || stream.status === 'STOPPED') return end(false)
        const { owner, fence } = stream
        const claim = () => {
          const isForgotten = owner === node.name && !node.holds.has(id)
          this.#claim(node, id, fence, isForgotten ? SKIP : 0, () => end(true))
        }
        if (owner === undefined || owner === node.name) return claim()
        const other = this.#byName.get(owner)
        const reach = this.#reach(`n${node.place}`, other)
        if (reach === 'alive') {
          this.#at(2, () =>
            this.#on(other!, () =>
              this.#yield(other!, id, (yielded) => {
                if (yielded) this.#on(node, claim)
                else end(false)
              }),
            ),
          )
        } else if (reach === 'gone') {
          this.#callOf(
            node,
            (r) => r.leaveNode(owner),
            () => claim(),
          )
        } else claim()
      },
    )
  }

  /** The owner gives a stream without an encoder to another node. */
  #yield(node: Node, id: string, answer: (yielded: boolean) => void): void {
    const hold = node.holds.get(id)
    if (hold === undefined || hold.status === 'STREAMING' || hold.isCalling) return answer(false)
    this.#count('yields', `${id} of ${node.name}`)
    hold.isYielded = true
    this.#advance(node, hold)
    this.#at(20, () => answer(!hold.isCalling && hold.dirty.size === 0))
  }

  // Edges

  #poll(edge: Edge): void {
    for (const id of IDS) {
      const source = this.#byName.get(edge.sources.get(id) ?? '')
      const isAlive = this.#reach(`e${edge.place}`, source) === 'alive'
      const hold = isAlive ? source?.holds.get(id) : undefined
      if (hold === undefined || !this.#serve(edge, source!, hold)) this.#lookUp(edge, id)
    }
  }

  #lookUp(edge: Edge, id: string): void {
    if (edge.asking.has(id)) return
    edge.asking.add(id)
    this.#call(
      `e${edge.place}`,
      (r) => r.get(id),
      (stream) => {
        edge.asking.delete(id)
        if (stream?.owner !== undefined) edge.sources.set(id, stream.owner)
      },
    )
  }

  /** @returns false if the edge should ask who owns the stream */
  #serve(edge: Edge, node: Node, hold: Hold): boolean {
    const { id, fence } = hold
    const before = edge.served.get(id) ?? { fence: 0, last: 0, discontinuity: 0 }
    if (fence < before.fence) return false
    // A number that is not reserved is published once nobody can hold the lease for this node any more.
    const isAlone = this.#nowMs - node.renewedMs > LEASE_MS
    const open = hold.open ?? hold.media - 1
    const listed = [...hold.window]
      .filter(([number]) => number <= open && (number < hold.reserved || isAlone))
      .toSorted(([a], [b]) => a - b)
    const last = listed.at(-1)
    if (last === undefined) return false
    // An edge whose viewers have seen more waits.
    if (last[0] < before.last) return false
    let { discontinuity } = before
    for (const [number, { uri, discontinuity: own }] of listed) {
      const key = `${id} ${number}`
      const known = this.#seen.get(key)
      if (known !== undefined && known !== uri) this.#fail(`${key} is ${known} and ${uri}`)
      this.#seen.set(key, uri)
      if (number > before.last && own < discontinuity) this.#fail(`${key} goes back to ${own}`)
      discontinuity = Math.max(discontinuity, own)
    }
    if (last[0] > before.last) this.#count('segments')
    edge.served.set(id, { fence, last: last[0], discontinuity })
    return true
  }

  // Faults

  #planFaults(): void {
    const faults = 1 + this.#random.below(8)
    for (let n = 0; n < faults; n++)
      this.#at(this.#random.below(FAULTS_UNTIL_MS), () => this.#fault())
    const away = this.#webhookRandom.below(5)
    for (let n = 0; n < away; n++) {
      this.#at(this.#webhookRandom.below(FAULTS_UNTIL_MS), () => this.#webhooks.fault())
    }
  }

  #fault(): void {
    const random = this.#random
    const node = this.#anyNode()
    const edge = `e${random.below(EDGES)}`
    const other = `n${random.below(INGEST)}`
    const name = `n${node.place}`
    const ms = 500 + random.below(15_000)
    switch (random.below(9)) {
      case 0:
      case 1:
        return this.#kill(node)
      case 2:
        return this.#pause(node, 1000 + random.below(9000))
      case 3:
        return this.#separate(ms, [name, 'redis'])
      case 4:
        return this.#separate(ms, [name, other], [name, 'redis'])
      case 5:
        return this.#separate(ms, [edge, 'redis'], [edge, name])
      case 6:
        return this.#separate(
          ms,
          [name, 'redis'],
          ...[0, 1, 2].map((place) => [name, `n${place}`] as const),
        )
      case 7:
        this.#count('Redis away', `for ${ms} ms`)
        this.#redisFaults.add('away')
        return this.#at(ms, () => this.#redisFaults.delete('away'))
      default:
        return this.#failOver(random.below(1500), 3000 + random.below(3000))
    }
  }

  #kill(node: Node): void {
    if (node.isDead) return
    this.#count('killed', node.name)
    node.isDead = true
    this.#webhooks.kill(node.name)
    this.#at(1000 + this.#random.below(4000), () => this.#boot(node.place))
  }

  #pause(node: Node, ms: number): void {
    this.#count('paused', `${node.name} for ${ms} ms`)
    node.pausedUntilMs = this.#nowMs + ms
    this.#at(ms, () => this.#wake(node))
  }

  #wake(node: Node): void {
    if (node.pausedUntilMs > this.#nowMs) return
    const backlog = node.backlog
    node.backlog = []
    for (const run of backlog) this.#on(node, run)
  }

  #separate(ms: number, ...pairs: (readonly [string, string])[]): void {
    this.#count('partitions', `${pairs.join(' ')} for ${ms} ms`)
    const names = pairs.map((pair) => pair.join(' '))
    for (const name of names) this.#cut.add(name)
    this.#at(ms, () => {
      for (const name of names) this.#cut.delete(name)
    })
  }

  /** Sentinel's new master has not seen the last writes, and its clock is another. */
  #failOver(lostMs: number, ms: number): void {
    if (this.#isFailingOver) return
    this.#isFailingOver = true
    const { nodes, gone, leases, streams, windows, listed, stopped, unclaimed } = this.#model
    const copy = {
      ...{ nodes: new Map(nodes), gone: new Map(gone), leases: new Map(leases) },
      ...{ streams: new Map(streams), windows: new Map(windows), listed: new Set(listed) },
      ...{ stopped: new Map(stopped), unclaimed: new Map(unclaimed) },
    }
    const { ends, holders, outboxes } = this.#model.outboxes
    const outboxCopy = {
      ...{ ends: new Map(ends), holders: new Map(holders) },
      outboxes: new Map(
        [...outboxes].map(([name, { texts, expiresAtMs }]) => {
          return [name, { texts: new Map(texts), expiresAtMs }]
        }),
      ),
    }
    this.#at(lostMs, () => {
      this.#count('failovers', `that loses ${lostMs} ms and takes ${ms} ms`)
      this.#redisFaults.add('failover')
      this.#hasLostWrites = true
      this.#at(ms, () => {
        Object.assign(this.#model, copy)
        Object.assign(this.#model.outboxes, outboxCopy)
        this.#servers++
        this.#webhooks.failOver()
        this.#clockSkewMs = this.#random.below(2000) - 1000
        this.#redisFaults.delete('failover')
        this.#isFailingOver = false
      })
    })
  }

  #heal(): void {
    this.#cut.clear()
    this.#redisFaults.delete('away')
    for (const node of this.#nodes) {
      node.pausedUntilMs = 0
      this.#wake(node)
    }
  }

  // Judgement

  #fail(what: string): void {
    this.#note(`violation: ${what}`)
    if (this.#violations.length < 10) this.#violations.push(`at ${this.#nowMs} ms: ${what}`)
  }

  /** After the faults each running stream is streaming, and each edge follows it. */
  #judgeLife(): void {
    for (const id of IDS) {
      const stream = this.#model.get(id)
      if (stream === undefined && !this.#hasLostWrites) this.#fail(`${id} is lost`)
      if (stream === undefined || stream.status === 'STOPPED') continue
      this.#count('alive')
      const owner = this.#byName.get(stream.owner ?? '')
      const hold = owner?.holds.get(id)
      if (owner === undefined || owner.isDead || hold?.fence !== stream.fence) {
        this.#fail(`${id} is ${stream.status} without its owner ${stream.owner}`)
        continue
      }
      if (hold.status !== 'STREAMING')
        this.#fail(`${id} is ${hold.status} although its encoder calls`)
      for (const { place, served } of this.#edges) {
        const { fence = 0, last = 0 } = served.get(id) ?? {}
        if (fence !== hold.fence || last < (hold.open ?? 0) - 2) {
          this.#fail(
            `the edge ${place} has ${id} to ${last} of ${hold.open}, fence ${fence} of ${hold.fence}`,
          )
        }
      }
    }
  }

  /** Without encoders, each stream that had one ends. */
  #judgeEnd(): void {
    for (const id of IDS) {
      const stream = this.#model.get(id)
      // One that nobody has claimed ends with its key.
      const isUnclaimed = stream?.status === 'READY' && stream.owner === undefined
      const isOver = stream === undefined || stream.status === 'STOPPED' || isUnclaimed
      if (!isOver) this.#fail(`${id} is ${stream.status} for ever, of ${stream.owner}`)
      for (const { name, holds } of this.#nodes)
        if (holds.has(id)) this.#fail(`${name} still has ${id}`)
    }
    this.#webhooks.judgeEnd()
  }
}

/** Waits for all promises that need no time. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function isBefore(
  a: { readonly atMs: number; readonly order: number },
  b: { readonly atMs: number; readonly order: number },
): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
