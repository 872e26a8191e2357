/**
 * A cluster in virtual time, with faults, from a seed: its nodes are real, see `simulated-node.ts`; Redis (its model), the
 * network between nodes, encoders, edges and receivers of webhooks are simulated. What edges see is judged.
 *
 * An edge is a model, since the real one has undici and sockets: it asks the registry for the owner, reads its
 * `playlist.m3u8`, and neither goes back to a lower fence nor to a lower number.
 *
 * @module
 */
import type { NodeRequest } from '../../src/cluster/node/call-node.ts'
import type { NodeLinks } from '../../src/cluster/node/node-links.ts'
import type { Argument } from '../../src/cluster/registry/redis.ts'
import { unavailable } from '../../src/cluster/registry/unavailable.ts'
import type { RegisteredStream } from '../../src/cluster/registry/registered.ts'
import { MillraceError } from '../../src/errors.ts'
import type { AcceptedPublisher } from '../../src/ingest/admission.ts'
import { FRAMES_PER_SEC, GopEncoder } from '../stream/gops.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { createRandom, type Random } from '../support/random.ts'
import { VirtualTime } from '../support/virtual-time.ts'
import { RegistryModel } from '../../src/cluster/registry/registry-model.ts'
import { encoded, SEQUENCE_CLOCK } from './registry/memory-registry.ts'
import { SEGMENT_SEC, SimulatedNode, type Surroundings } from './simulated-node.ts'
import { SimulatedWebhooks } from './simulated-webhooks.ts'

const LEASE_MS = 2000
const TIMEOUT_MS = 500
/** An encoder gives up a call, and a node that is silent. */
const CONNECT_MS = 2500
const SILENT_MS = 3000

const FAULTS_UNTIL_MS = 40_000
/** The last stop that a start follows is so long before the judgement that the stream is live by then. */
const RESTARTS_UNTIL_MS = 42_000
const ENCODERS_UNTIL_MS = 62_000
const END_MS = 90_000

const IDS = ['x', 'y']
const INGEST = 3
const EDGES = 2

/** Refusals that clients of a cluster with faults are to expect. */
const EXPECTED = new Set(['REGISTRY_UNAVAILABLE', 'STREAM_NOT_FOUND', 'SHUTTING_DOWN'])

/** Encoder of a stream, which calls any node. */
interface SimulatedEncoder {
  /** Newest stream key that a client has given it. */
  key?: string
  isCalling: boolean
  /** When it is off for good. */
  readonly untilMs: number
  /** Node that it is connected to. */
  node?: SimulatedNode
  leave?: () => void
  silentSinceMs?: number
}

type Begin<T> = (resolve: (value: T) => void, reject: (error: Error) => void) => void

interface Edge {
  readonly name: string
  /** URLs of owners, by stream id. */
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

class Cluster implements Surroundings {
  readonly time = new VirtualTime(settled)
  readonly #random: Random
  readonly #model: RegistryModel
  readonly #webhooks: SimulatedWebhooks
  readonly #violations: string[] = []
  readonly #counts: Record<string, number> = {}
  #clockSkewMs = 0
  #servers = 0
  readonly #redisFaults = new Set<'away' | 'failover'>()
  #isFailingOver = false
  #hasLostWrites = false
  readonly #cut = new Set<string>()
  readonly #nodes: SimulatedNode[] = []
  #boots = 0
  readonly #edges: Edge[] = []
  readonly #encoders = new Map<string, SimulatedEncoder>()
  readonly #fences = new Map<string, string>()
  readonly #seen = new Map<string, string>()
  readonly #trace: ((line: string) => void) | undefined

  constructor(seed: number, trace?: (line: string) => void) {
    this.#random = createRandom(seed)
    this.#trace = trace
    const redisMs = () => this.time.clock.wallMs() + this.#clockSkewMs
    const server = () => `s${this.#servers}`
    this.#model = new RegistryModel({
      ...{ nowMs: redisMs, server, leaseMs: LEASE_MS, settleMs: 2 * LEASE_MS },
      sequenceClock: SEQUENCE_CLOCK,
    })
    this.#webhooks = new SimulatedWebhooks({
      ...{ random: this.#random, model: this.#model, redisMs, server },
      nowMs: () => this.#nowMs,
      at: (delayMs, run) => this.#at(delayMs, run),
      ask: (node, call) => this.#askOf(node, call),
      count: (name, what) => this.#count(name, what),
      fail: (what) => this.#fail(what),
    })
  }

  async run(): Promise<Verdict> {
    for (let place = 0; place < INGEST; place++) this.#boot(place)
    for (let place = 0; place < EDGES; place++) {
      const lists = { sources: new Map(), served: new Map(), asking: new Set<string>() }
      const edge: Edge = { name: `e${place}`, ...lists }
      this.#edges.push(edge)
      this.#every(300, () => this.#poll(edge))
    }
    for (const id of IDS) {
      const { below } = this.#random
      const untilMs = this.#random.chance(0.3) ? below(FAULTS_UNTIL_MS) : ENCODERS_UNTIL_MS
      const encoder: SimulatedEncoder = { isCalling: false, untilMs }
      this.#encoders.set(id, encoder)
      // With the node it is at, more often than not: nobody else learns that it is gone.
      if (untilMs < FAULTS_UNTIL_MS && this.#random.chance(0.7))
        this.#at(untilMs, () => encoder.node && this.#kill(encoder.node))
      this.#at(this.#random.below(3000), () => void this.#start(id))
      this.#every(1000, () => this.#encode(id))
      this.#every(3000, () => void this.#ask(id))
    }
    this.#planFaults()
    this.#at(FAULTS_UNTIL_MS, () => this.#heal())
    this.#at(ENCODERS_UNTIL_MS - 1, () => this.#judgeLife())
    this.#at(END_MS - 1, () => this.#judgeEnd())
    await this.time.pass(END_MS)
    return { violations: this.#violations, counts: this.#counts }
  }

  get #nowMs(): number {
    return this.time.nowMs
  }

  #at(delayMs: number, run: () => void): void {
    this.time.after(delayMs, run)
  }

  /** A promise that `begin` settles, or the time limit. */
  #within<T>(ms: number, late: () => Error, begin: Begin<T>): Promise<T> {
    let cancel = () => {}
    return new Promise<T>((resolve, reject) => {
      cancel = this.time.after(ms, () => reject(late()))
      begin(resolve, reject)
    }).finally(() => cancel())
  }

  #every(ms: number, run: () => void): void {
    const again = (): void => {
      run()
      this.#at(ms + this.#random.below(ms >> 2), again)
    }
    this.#at(this.#random.below(ms), again)
  }

  #count(name: string, what = ''): void {
    this.#note(`${name} ${what}`)
    this.#counts[name] = (this.#counts[name] ?? 0) + 1
  }

  #note(what: string): void {
    this.#trace?.(`${this.#nowMs} ${what}`)
  }

  // Network

  #isCut(a: string, b: string): boolean {
    return this.#cut.has(`${a} ${b}`) || this.#cut.has(`${b} ${a}`)
  }

  /** Time that a message needs. */
  #delayMs(): number {
    return this.#random.chance(0.01) ? this.#random.below(3000) : 1 + this.#random.below(5)
  }

  /** Runs `ask` at Redis, which may get it twice. @throws {MillraceError} `REGISTRY_UNAVAILABLE` without a reply in time */
  #call<T>(from: string, ask: () => T): Promise<T> {
    const random = this.#random
    return this.#within<T>(TIMEOUT_MS, unavailable, (resolve, reject) => {
      const delayMs = this.#delayMs()
      const backMs = random.chance(0.02) ? Infinity : 1 + random.below(5)
      const repeatMs = random.chance(0.02) ? random.below(4000) : Infinity
      if (this.#isCut(from, 'redis')) return
      const apply = (): (() => void) => {
        const isAway = this.#redisFaults.size > 0 || this.#isCut(from, 'redis')
        if (isAway) return () => reject(unavailable())
        try {
          const reply = ask()
          return () => resolve(reply)
        } catch (error) {
          return () => reject(error as Error)
        }
      }
      this.#at(delayMs, () => {
        const end = apply()
        if (backMs < Infinity) this.#at(backMs, end)
        if (repeatMs < Infinity) this.#at(repeatMs, apply)
      })
    })
  }

  /** A call of Redis whose reply a node takes once it is awake. */
  #askOf<T>(node: SimulatedNode, ask: () => T): Promise<T> {
    return gated(node, this.#call(hostOf(node.url), ask))
  }

  registryOf(node: SimulatedNode): NodeLinks['registry'] {
    return new Proxy(this.#model, {
      get:
        (model, name: keyof RegistryModel) =>
        (...args: unknown[]) => {
          const sent = args.map(encoded)
          return this.#askOf(node, () => {
            if (name === 'claim') this.#judgeClaim(node, sent[0] as string)
            const reply: unknown = Reflect.apply(model[name] as () => unknown, model, sent)
            this.#watch(`${node.name} ${name}`, sent, reply)
            return reply
          })
        },
    }) as unknown as NodeLinks['registry']
  }

  /** A node yields no stream whose encoder sends. */
  #judgeClaim(node: SimulatedNode, id: string): void {
    const stream = this.#model.get(id)
    const owner = this.#encoders.get(id)!.node
    const isFed = owner?.isAwake === true && owner.streams.find(id)?.status === 'STREAMING'
    if (isFed && owner !== node && stream?.owner === owner.name && stream.isYielded)
      this.#fail(`${owner.name} has yielded ${id} although its encoder sends`)
  }

  /** Takes note of a call of the registry, and judges claims. */
  #watch(call: string, args: readonly unknown[], reply: unknown): void {
    if (this.#trace) this.#note(`${call} ${JSON.stringify(args)}: ${JSON.stringify(reply)}`)
    const { outcome, stream } = (reply ?? {}) as { outcome?: string; stream?: RegisteredStream }
    if (outcome === undefined) return
    const [, name] = call.split(' ')
    this.#counts[`${name}: ${outcome}`] = (this.#counts[`${name}: ${outcome}`] ?? 0) + 1
    if (outcome !== 'granted' || stream === undefined) return
    const key = `${stream.id} ${stream.fence}`
    const known = this.#fences.get(key) ?? stream.epoch
    if (known !== stream.epoch) this.#fail(`two owners under the fence ${key}`)
    this.#fences.set(key, known)
  }

  webhooksOf(node: SimulatedNode) {
    return this.#webhooks.boot(node)
  }

  call(from: SimulatedNode, { url, call, body, timeoutMs }: NodeRequest): Promise<unknown> {
    const sent = encoded(body)
    const late = () => new Error('the node does not answer in time')
    return gated(
      from,
      this.#within<unknown>(timeoutMs, late, (resolve, reject) => {
        const isLost = () => this.#random.chance(0.01) || this.#isCut(hostOf(url), hostOf(from.url))
        if (isLost()) return
        this.#at(this.#delayMs(), () => {
          const to = this.#nodeAt(url)
          const reply = (end: () => void) => {
            if (!isLost()) this.#at(this.#delayMs(), end)
          }
          if (to.isDead) return reply(() => reject(refused()))
          to.run(() => {
            this.#count(`call: ${call}`, `${JSON.stringify(sent)} of ${from.name} at ${to.name}`)
            to.answer(call, sent).then(
              (answer) => reply(() => resolve(encoded(answer))),
              (error: Error) => reply(() => reject(error)),
            )
          })
        })
      }),
    )
  }

  command(from: SimulatedNode, args: readonly Argument[]): Promise<unknown> {
    const [node, command] = [String(args[3]).split(':')[2], String(args.at(-1))]
    return this.#askOf(from, () => {
      this.#count('commands', `${command} to ${node}`)
      const to = this.#nodes.find(({ name }) => name === node)
      if (to) this.#at(this.#delayMs(), () => to.obey(JSON.parse(command)))
    })
  }

  #nodeAt(url: string): SimulatedNode {
    return this.#nodes.find((node) => node.url === url)!
  }

  // Nodes

  #boot(place: number): void {
    const name = `${this.#random.below(10)}n${this.#boots++}`
    this.#count('boots', name)
    this.#nodes[place] = new SimulatedNode(name, `http://n${place}`, this)
  }

  #anyNode(): SimulatedNode {
    return this.#nodes[this.#random.below(INGEST)]!
  }

  // Clients

  /** A call of the API at a node, which may die meanwhile. @returns undefined if it is refused */
  async #api<T>(node: SimulatedNode, call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call()
    } catch (error) {
      if (error instanceof MillraceError && EXPECTED.has(error.code)) return undefined
      this.#fail(`${node.name} answers ${String(error)}`)
      return undefined
    }
  }

  async #start(id: string): Promise<void> {
    const node = this.#anyNode()
    const again = () => {
      if (this.#nowMs < RESTARTS_UNTIL_MS) void this.#start(id)
    }
    if (!node.isAwake) return this.#at(500, again)
    let isAnswered = false
    this.#at(20_000, () => {
      if (!isAnswered && node.isDead) again()
    })
    const { control } = node.member
    const started = await this.#api(node, () => control.startStream({ streamId: id }))
    isAnswered = true
    if (started === undefined) return this.#at(500, again)
    this.#encoders.get(id)!.key = started.shortStreamKey
    if (!this.#random.chance(0.3)) return
    this.#at(5000 + this.#random.below(20_000), () => void this.#stopAndStart(id))
  }

  async #stopAndStart(id: string): Promise<void> {
    const node = this.#anyNode()
    if (this.#nowMs > RESTARTS_UNTIL_MS || !node.isAwake) return
    const isRestarted = this.#random.chance(0.7)
    await this.#api(node, () => node.member.control.stopStream(id))
    if (isRestarted) this.#at(1000 + this.#random.below(5000), () => void this.#start(id))
  }

  /** Any node has a record of each stream. */
  async #ask(id: string): Promise<void> {
    const node = this.#anyNode()
    if (!node.isAwake) return
    const record = await this.#api(node, () => node.member.control.status(id))
    if (record !== undefined) this.#count(record.stale ? 'stale records' : 'records', id)
  }

  /** The encoder of a stream connects to any node, and gives up one that is silent for 3 s. */
  #encode(id: string): void {
    const encoder = this.#encoders.get(id)!
    const { node, key } = encoder
    const isOff = this.#nowMs >= encoder.untilMs
    if (node !== undefined) {
      if (node.isAwake) delete encoder.silentSinceMs
      else encoder.silentSinceMs ??= this.#nowMs
      const silentMs = this.#nowMs - (encoder.silentSinceMs ?? this.#nowMs)
      const leaves = this.#nowMs < FAULTS_UNTIL_MS && this.#random.chance(0.03)
      if (isOff || leaves || node.isDead || silentMs >= SILENT_MS) encoder.leave?.()
      // Its operator has it call another node as well.
      else if (key !== undefined && this.#random.chance(0.05))
        void this.#connect(id, this.#anyNode(), key)
    } else if (!isOff && !encoder.isCalling && key !== undefined) {
      void this.#connect(id, this.#anyNode(), key)
    }
  }

  async #connect(id: string, node: SimulatedNode, streamKey: string): Promise<void> {
    if (!node.isAwake) return
    const encoder = this.#encoders.get(id)!
    const call = new AbortController()
    encoder.isCalling = true
    const end = () => {
      if (!call.signal.aborted) encoder.isCalling = false
      call.abort()
    }
    this.#at(CONNECT_MS, end)
    const remote = { port: 10_080, address: '192.0.2.1', remote: '192.0.2.1:5000' }
    const request = { streamKey, ...remote, checkEncryption: async () => undefined }
    const accepted = await node.admission.admit(request, call.signal).catch((error: unknown) => {
      this.#count('encoders refused', `${id} at ${node.name}: ${String(error)}`)
    })
    if (accepted && !call.signal.aborted) this.#publish(encoder, node, accepted)
    end()
  }

  /** Sends half a second of media at once. */
  #publish(encoder: SimulatedEncoder, node: SimulatedNode, accepted: AcceptedPublisher): void {
    let halves = 0
    let isOver = false
    const connection = {
      lastPacketUs: this.time.clock.nowUs(),
      report: () => PUBLISHER_REPORT,
      close() {
        if (isOver) return
        isOver = true
        accepted.disconnected()
        if (encoder.node !== node) return
        delete encoder.node
        delete encoder.leave
      },
    }
    const publication = accepted.connect(connection)
    if (publication === undefined) return
    // Of two, the one that has connected first has lost its node.
    encoder.leave?.()
    encoder.node = node
    delete encoder.silentSinceMs
    encoder.leave = () => {
      delete encoder.node
      delete encoder.leave
      node.run(() => {
        publication.end('shutdown')
        connection.close()
      })
    }
    const send = () => {
      if (isOver || encoder.node !== node) return
      node.run(() => {
        connection.lastPacketUs = this.time.clock.nowUs()
        publication.push(mediaAt(halves++))
      })
      this.#at(500, send)
    }
    send()
  }

  // Edges

  #poll(edge: Edge): void {
    for (const id of IDS) {
      const url = edge.sources.get(id)
      const node = url === undefined ? undefined : this.#nodeAt(url)
      const isReached = node?.isAwake === true && !this.#isCut(edge.name, hostOf(node.url))
      if (!isReached || !this.#serve(edge, node, id)) this.#lookUp(edge, id)
    }
  }

  #lookUp(edge: Edge, id: string): void {
    if (edge.asking.has(id)) return
    edge.asking.add(id)
    this.#call(edge.name, () => this.#model.get(id)?.ownerUrl)
      .then((url) => url && edge.sources.set(id, url))
      .catch(() => undefined)
      .finally(() => edge.asking.delete(id))
  }

  /** @returns false if the edge should ask who owns the stream */
  #serve(edge: Edge, node: SimulatedNode, id: string): boolean {
    const fence = node.member.fenceOf(id)
    const before = edge.served.get(id) ?? { fence: 0, last: 0, discontinuity: 0 }
    if (fence === undefined || fence < before.fence) return false
    const listed = readPlaylist(node.streams.find(id)?.files.get('playlist.m3u8')?.chunks.join(''))
    const last = listed.at(-1)
    // An edge whose viewers have seen more waits.
    if (last === undefined || last.number < before.last) return false
    let { discontinuity } = before
    for (const { number, uri, discontinuity: own } of listed) {
      const key = `${id} ${number}`
      const known = this.#seen.get(key) ?? uri
      if (known !== uri) this.#fail(`${key} is ${known} and ${uri}`)
      this.#seen.set(key, uri)
      if (number > before.last && own < discontinuity) this.#fail(`${key} goes back to ${own}`)
      discontinuity = Math.max(discontinuity, own)
    }
    if (last.number > before.last) this.#count('segments')
    edge.served.set(id, { fence, last: last.number, discontinuity })
    return true
  }

  // Faults

  #planFaults(): void {
    const faults = 1 + this.#random.below(8)
    for (let n = 0; n < faults; n++)
      this.#at(this.#random.below(FAULTS_UNTIL_MS), () => this.#fault())
    const away = this.#random.below(5)
    for (let n = 0; n < away; n++)
      this.#at(this.#random.below(FAULTS_UNTIL_MS), () => this.#webhooks.fault())
  }

  #fault(): void {
    const random = this.#random
    const node = this.#anyNode()
    const edge = `e${random.below(EDGES)}`
    const other = `n${random.below(INGEST)}`
    const name = hostOf(node.url)
    const ms = 500 + random.below(15_000)
    switch (random.below(10)) {
      case 0:
      case 1:
        return this.#kill(node)
      case 9:
        return this.#leave(node)
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

  #kill(node: SimulatedNode): void {
    if (node.isDead) return
    this.#count('killed', node.name)
    node.isDead = true
    this.#webhooks.kill(node.name)
    const place = this.#nodes.indexOf(node)
    this.#at(1000 + this.#random.below(4000), () => this.#boot(place))
  }

  /** A node goes away in good order. */
  #leave(node: SimulatedNode): void {
    this.#count('left', node.name)
    node.run(() => void node.member.handOver(2000).then(() => this.#kill(node)))
    this.#at(5000, () => this.#kill(node))
  }

  #pause(node: SimulatedNode, ms: number): void {
    this.#count('paused', `${node.name} for ${ms} ms`)
    node.pause()
    this.#at(ms, () => node.wake())
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
    const { outboxes, revocations } = this.#model
    const parts = [this.#model, outboxes, revocations]
    const copies = parts.map((part) => {
      const state = Object.entries(part).filter(([, value]) => !parts.includes(value as never))
      return structuredClone(Object.fromEntries(state))
    })
    this.#at(lostMs, () => {
      this.#count('failovers', `that loses ${lostMs} ms and takes ${ms} ms`)
      this.#redisFaults.add('failover')
      this.#hasLostWrites = true
      this.#at(ms, () => {
        for (const [index, part] of parts.entries()) Object.assign(part, copies[index])
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
    for (const node of this.#nodes) node.wake()
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
      if (stream === undefined || stream.status === 'STOPPED') {
        for (const { name, isDead, streams } of this.#nodes)
          if (!isDead && streams.find(id)) this.#fail(`${name} has ${id}, which is over`)
        continue
      }
      if (this.#encoders.get(id)!.untilMs < ENCODERS_UNTIL_MS) {
        if (stream.status !== 'READY') this.#fail(`${id} is ${stream.status} without an encoder`)
        continue
      }
      this.#count('alive')
      const owner = this.#nodes.find(({ name, isDead }) => name === stream.owner && !isDead)
      const live = owner?.streams.find(id)
      if (live === undefined || owner?.member.fenceOf(id) !== stream.fence) {
        this.#fail(`${id} is ${stream.status} without its owner ${stream.owner}`)
        continue
      }
      if (live.status !== 'STREAMING')
        this.#fail(`${id} is ${live.status} although its encoder calls`)
      const open = live.freeSequence.media - 1
      for (const { name, served } of this.#edges) {
        const { fence = 0, last = 0 } = served.get(id) ?? {}
        if (fence === stream.fence && last >= open - 2) continue
        this.#fail(`${name} has ${id} to ${last} of ${open}, fence ${fence} of ${stream.fence}`)
      }
    }
  }

  /** Without encoders, each stream that had one ends. */
  #judgeEnd(): void {
    for (const id of IDS) {
      const stream = this.#model.get(id)
      // One that had no encoder ends with its key.
      if (stream?.status === 'READY') continue
      const isOver = stream === undefined || stream.status === 'STOPPED'
      if (!isOver) this.#fail(`${id} is ${stream.status} for ever, of ${stream.owner}`)
      for (const { name, isDead, streams } of this.#nodes)
        if (!isDead && streams.find(id)) this.#fail(`${name} still has ${id}`)
    }
    this.#webhooks.judgeEnd()
  }
}

/** Settles as a promise does, once the node is awake; never if it dies. */
function gated<T>(node: SimulatedNode, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    promise.then(
      (value) => node.run(() => resolve(value)),
      (error: Error) => node.run(() => reject(error)),
    )
  })
}

/** As `fetch` fails where nobody listens. */
function refused(): TypeError {
  return new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })
}

const frames = new GopEncoder().frames(
  Array.from({ length: END_MS / 1000 / SEGMENT_SEC }, () => SEGMENT_SEC),
)
const media: Buffer[] = []

/** Half a second of media: all encoders send the same. */
function mediaAt(index: number): Buffer {
  while (media.length <= index) {
    const half = Array.from({ length: FRAMES_PER_SEC / 2 }, () => frames.next().value as Buffer)
    media.push(Buffer.concat(half))
  }
  return media[index]!
}

/** Name of a node in the network. */
function hostOf(url: string): string {
  return url.slice('http://'.length)
}

function readPlaylist(text = '') {
  const first = (tag: string) => Number(new RegExp(`#EXT-X-${tag}:(\\d+)`).exec(text)?.[1] ?? 0)
  let number = first('MEDIA-SEQUENCE')
  let discontinuity = first('DISCONTINUITY-SEQUENCE')
  return text.split('\n').flatMap((line) => {
    if (line === '#EXT-X-DISCONTINUITY') discontinuity++
    return line === '' || line.startsWith('#')
      ? []
      : [{ number: number++, discontinuity, uri: line }]
  })
}

/** Number of stream keys that threads sign just now: virtual time waits for them. */
const threads = { signing: 0 }
const sign = crypto.subtle.sign.bind(crypto.subtle)
crypto.subtle.sign = async (...args: Parameters<typeof sign>) => {
  threads.signing++
  return sign(...args).finally(() => threads.signing--)
}

/** Waits for all promises that need no time. */
async function settled(): Promise<void> {
  do {
    await new Promise<void>((resolve) => {
      if (threads.signing > 0) setImmediate(resolve)
      else process.nextTick(resolve)
    })
  } while (threads.signing > 0)
}
