/**
 * SRT listener: accepts callers on its UDP ports. Drives one `Endpoint` per socket with clock and timer.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock, type Clock } from '../../timing/clock.ts'
import { Endpoint } from '../connection/endpoint.ts'
import { groupKey, SocketGroups } from '../connection/socket-group.ts'
import { checkPassphrase, KeyDeriver } from '../crypto/key-encryption.ts'
import type { Attempt } from '../handshake/attempt.ts'
import type { Decision } from '../handshake/handshake-responder.ts'
import { agreeOnKeys } from '../handshake/key-agreement.ts'
import { HandshakeLimits } from '../handshake/source-limiter.ts'
import { SrtError } from '../srt-error.ts'
import { SrtlaReceiver } from '../srtla/srtla-receiver.ts'
import type { ListenerStats, SrtlaStats } from '../stats.ts'
import { TICK_MS } from '../timers.ts'
import type { Datagram } from '../transmitter.ts'
import { Turns } from '../turns.ts'
import type { AcceptDecision, ConnectionRequest, Elsewhere, MovedCaller } from '../types.ts'
import { MAX_LATENCY_MS } from '../wire/limits.ts'
import { RejectCode } from '../wire/reject-code.ts'
import { KernelDropMonitor } from './kernel-drops.ts'
import { PeerSockets } from './peer-sockets.ts'
import {
  bindSockets,
  canReusePort,
  enlargeReceiveBuffer,
  RECEIVE_BUFFER_BYTES,
  transmit,
} from './socket.ts'

/** Options of `createListener`. */
export interface ListenerOptions {
  /**
   * Numeric address, or several; `::` also listens on IPv4. On a machine with several addresses, list them: a response
   * then comes from the address that was called, which a wildcard does not ensure. Rate limits apply to all together.
   */
  readonly host: string | readonly string[]
  /** UDP port; 0 for any free port. */
  readonly port: number
  /**
   * Whether listeners of other processes may have the port, too: the kernel gives each caller to one of them. From Node.js
   * 22.12 on; where a system has no such thing, the listener does not open. Default false.
   */
  readonly reusePort?: boolean
  /** Min receive latency in milliseconds, used if the caller proposes less, unless `accept` returns another. */
  readonly latencyMs: number
  /** Max receive latency in milliseconds, used if the caller proposes more; default `MAX_LATENCY_MS`. */
  readonly maxLatencyMs?: number
  /** Silence of an encoder in milliseconds after which its connection ends; default 5000. */
  readonly idleTimeoutMs?: number
  /** Passphrase of callers, unless `accept` returns another; by default callers must not encrypt. */
  readonly passphrase?: string
  /**
   * Max time in milliseconds that `accept` may take, without stalls of the process; default 2500, since callers stop after
   * 3000 unless they are set to wait for longer.
   */
  readonly acceptTimeoutMs?: number
  /**
   * Decides about a caller. An exception rejects the caller with the number in its `rejectCode`; without one, with
   * `RejectCode.INTERNAL`.
   *
   * @param signal  aborted after `acceptTimeoutMs` or by `close`; a later decision has no effect
   */
  readonly accept: (
    request: ConnectionRequest,
    signal: AbortSignal,
  ) => Promise<AcceptDecision | Elsewhere>
  readonly clock?: Clock
  /** Random bytes for secrets and socket ids. */
  readonly random?: (bytes: number) => Buffer
  /** Receives warnings for the operator, without secrets. */
  readonly onWarning?: (message: string) => void
}

/**
 * @throws {SrtError} `ADDRESS_IN_USE`, naming the address
 * @throws {RangeError} if `isPassphrase` is false for the passphrase, or `host` is empty
 */
export async function createListener(options: ListenerOptions): Promise<Listener> {
  if (options.passphrase !== undefined) checkPassphrase(options.passphrase)
  const addresses = [options.host].flat()
  if (addresses.length === 0)
    throw new RangeError('host is empty: set at least one address to listen on')
  return new Listener(await bindSockets(addresses, options.port, options), options)
}

/** What callers ask for and this side does not support, though an operator can set them to do without. */
const UNSUPPORTED: Readonly<Partial<Record<RejectCode, { what: string; remedy: string }>>> = {
  [RejectCode.GROUP]: {
    what: 'a socket group',
    remedy: 'Set the encoder to one line, or do without a shared port.',
  },
  [RejectCode.CRYPTO]: {
    what: 'AES-GCM',
    remedy: 'Set the encoder to AES-CTR (libsrt: cryptomode=1).',
  },
}

/** Where a caller has called. */
type Place = Required<Pick<ConnectionRequest, 'localPort' | 'isMovable'>>

/** One address of the listener. */
interface BoundSocket {
  readonly socket: Socket
  readonly address: AddressInfo
  readonly endpoint: Endpoint
  /** Present on the port of bonded lines. */
  readonly srtla?: SrtlaReceiver
  /** Present on a port that is shared. */
  readonly peers?: PeerSockets
}

/** A listening port, and those that `open` adds. `close` ends every connection, and every sink with `end('closed')`. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #clock: Clock
  #sockets: readonly BoundSocket[]
  /** Statistics of closed ports: counters never go back. */
  #endedStats: readonly ListenerStats[] = []
  readonly #undecided = new Map<Attempt, AbortController>()
  readonly #limits = new HandshakeLimits()
  readonly #groups: SocketGroups
  /** Turns of the members of a group, by its key: a decision shows whether the next one joins it. */
  readonly #groupTurns = new Map<string, Turns>()
  readonly #keyDeriver = new KeyDeriver()
  /** Checks before the decision leave callers that the accept hook knows a place of the deriver. */
  readonly #checks = new Turns(1)
  readonly #dropMonitor: KernelDropMonitor
  #ticker: NodeJS.Timeout | undefined
  /** Total time that the event loop has waited for input, in milliseconds, up to the latest tick. */
  #idleMs = 0
  #closing: Promise<void> | undefined

  /** Use `createListener`. */
  constructor(sockets: readonly Socket[], options: ListenerOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#groups = new SocketGroups(options.random ?? randomBytes)
    this.#sockets = sockets.map((socket) => this.#serve(socket, false))
    this.#dropMonitor = new KernelDropMonitor({
      readSockets: () =>
        this.#sockets.flatMap(({ address, peers }) => [address, ...(peers?.addresses ?? [])]),
      advice: this.#enlargeReceiveBuffers(sockets),
      onWarning: (message) => this.#warn(message),
    })
  }

  /** @returns command that allows larger receive buffers; undefined if the kernel does not limit them */
  #enlargeReceiveBuffers(sockets: readonly Socket[]): string | undefined {
    const granted = sockets.map(enlargeReceiveBuffer).find((bytes) => bytes !== undefined)
    if (granted === undefined) return undefined
    const advice = `sysctl -w net.core.rmem_max=${RECEIVE_BUFFER_BYTES}`
    this.#warn(
      `The UDP receive buffer is ${granted} of ${RECEIVE_BUFFER_BYTES} bytes. Bursts lose packets and viewers see holes. Run: ${advice}`,
    )
    return advice
  }

  /** Address of the first socket. */
  address(): AddressInfo {
    return this.#sockets[0]!.address
  }

  /**
   * Listens on another port as well, with the same options.
   *
   * @param isBonded  whether callers reach the port over the lines of SRTLA; such a port is not shared
   * @throws {SrtError} `ADDRESS_IN_USE`
   */
  async open(port: number, isBonded = false): Promise<void> {
    const { host, reusePort } = this.#options
    const sockets = await bindSockets([host].flat(), port, { reusePort: reusePort && !isBonded })
    for (const socket of sockets) enlargeReceiveBuffer(socket)
    this.#sockets = [...this.#sockets, ...sockets.map((socket) => this.#serve(socket, isBonded))]
  }

  /** Whether it listens on this port. */
  has(port: number): boolean {
    return this.#sockets.some(({ address }) => address.port === port)
  }

  /** Ends the connections of a port, and listens there no more. */
  async closePort(port: number): Promise<void> {
    const closing = this.#sockets.filter(({ address }) => address.port === port)
    this.#sockets = this.#sockets.filter(({ address }) => address.port !== port)
    const closed = this.#close(closing)
    const stats = closing.map(({ endpoint }) => endpoint.stats)
    if (stats.length > 0) this.#endedStats = [[...this.#endedStats, ...stats].reduce(addStats)]
    await closed
  }

  /** Number of open connections. */
  get connectionCount(): number {
    return this.#sockets.reduce((sum, { endpoint }) => sum + endpoint.connectionCount, 0)
  }

  /** Counters of all connections, and of what was rejected. */
  stats(): ListenerStats {
    const stats = this.#sockets.map(({ endpoint, srtla }) => {
      const { datagrams, ...counters } = endpoint.stats
      return { ...counters, datagrams: datagrams + (srtla?.stats.datagrams ?? 0) }
    })
    return [...this.#endedStats, ...stats].reduce(addStats)
  }

  /** Statistics of the ports of bonded lines; undefined without one. */
  srtlaStats(): SrtlaStats | undefined {
    const stats = this.#sockets.flatMap(({ srtla }) => srtla?.stats ?? [])
    return stats.length === 0 ? undefined : stats.reduce(addCounts)
  }

  /** Number of datagrams that the kernel dropped since the sockets were opened; undefined without such a counter. */
  kernelDrops(): Promise<number | undefined> {
    return this.#dropMonitor.read(this.#clock.nowUs())
  }

  /**
   * Takes a caller of another listener at a shared port, which has verified that the caller is at its address: its CONCLUSIONs
   * come here for 3 s. No effect where the port is not open, or not shared.
   */
  expect({ localPort, remotePort, remoteAddress }: MovedCaller): void {
    if (this.#closing !== undefined) return
    for (const { address, endpoint, peers } of this.#sockets) {
      const isOther =
        address.port !== localPort || isIPv6(address.address) !== isIPv6(remoteAddress)
      if (peers === undefined || isOther) continue
      endpoint.expect(remotePort, remoteAddress, this.#clock.nowUs())
      this.#startTicker()
    }
  }

  /**
   * Ends all connections and closes the sockets.
   *
   * @param finishMs  max time for callers to get what was sent to them; default 0
   */
  close(finishMs = 0): Promise<void> {
    this.#closing ??= this.#closeAll(finishMs)
    return this.#closing
  }

  async #closeAll(finishMs: number): Promise<void> {
    for (const { endpoint } of this.#sockets) endpoint.close(this.#clock.nowUs(), finishMs * 1000)
    while (this.connectionCount > 0) await sleep(TICK_MS)
    clearInterval(this.#ticker)
    await this.#close(this.#sockets)
  }

  async #close(sockets: readonly BoundSocket[]): Promise<void> {
    const closed = sockets.map(({ socket }) => once(socket, 'close'))
    for (const { endpoint } of sockets) endpoint.close(this.#clock.nowUs())
    for (const { socket, peers } of sockets) {
      peers?.closeAll()
      socket.close()
    }
    await Promise.all(closed)
  }

  /** Each socket has an endpoint of its own, so a response comes from the address that was called. */
  #serve(socket: Socket, isBonded: boolean): BoundSocket {
    const options = this.#options
    const { random = randomBytes, reusePort = false } = options
    const isShared = reusePort && !isBonded && canReusePort(process.versions.node)
    const bound = socket.address()
    const send = (datagram: Datagram, port: number, address: string) =>
      transmit(socket, datagram, port, address)
    const srtla = isBonded
      ? new SrtlaReceiver({
          random,
          host: {
            send,
            deliver: (...packet) => endpoint.handleDatagram(...packet),
            isInUse: (port, address) => endpoint.isConnected(port, address),
          },
        })
      : undefined
    const onMessage = (datagram: Buffer, { address, port }: { address: string; port: number }) => {
      const receiver = srtla ?? endpoint
      receiver.handleDatagram(datagram, port, address, this.#clock.nowUs())
      if (endpoint.busy || srtla?.busy) this.#startTicker()
    }
    const onError = (error: Error) =>
      this.#warn(
        `SRT socket: ${error.message}. Encoders may lose packets. Check the network of this machine.`,
      )
    const peers = isShared ? new PeerSockets({ local: bound, onMessage, onError }) : undefined
    const endpoint: Endpoint = new Endpoint({
      latencyMs: options.latencyMs,
      maxLatencyMs: options.maxLatencyMs ?? MAX_LATENCY_MS,
      idleTimeoutUs: (options.idleTimeoutMs ?? 5000) * 1000,
      acceptTimeoutUs: (options.acceptTimeoutMs ?? 2500) * 1000,
      random,
      limits: this.#limits,
      // On a shared port, the kernel may give members to other processes.
      ...(!isShared && { groups: { registry: this.#groups, localPort: bound.port } }),
      ...(srtla && { linesOf: (port, address) => srtla.linesOf(port, address) }),
      nowUs: this.#clock.nowUs(),
      host: {
        connect: (port, address) => peers?.open(port, address),
        forget: (port, address) => peers?.close(port, address),
        transmit: srtla ? (packet, ...to) => srtla.transmit(wholeOf(packet), ...to) : send,
        request: (attempt) => {
          const { remotePort, remoteAddress } = attempt
          const isMovable = () => isShared && !endpoint.isConnected(remotePort, remoteAddress)
          void this.#decide(endpoint, attempt, { localPort: bound.port, isMovable })
        },
        refuse: ({ remoteAddress, remotePort }, code) => {
          const { what, remedy } = UNSUPPORTED[code] ?? {}
          if (what === undefined) return
          // The address is last: a log that limits lines of one kind tells the kind by how they begin.
          this.#warn(
            `A caller with ${what} is rejected (${code}). ${remedy} Caller: ${remoteAddress}:${remotePort}`,
          )
        },
        expire: (attempt) => this.#undecided.get(attempt)?.abort(),
        fail: (error) =>
          this.#warn(
            `A sink threw ${String(error)}. Its SRT connection is closed. Report this line.`,
          ),
      },
    })
    socket.on('message', onMessage)
    socket.on('error', onError)
    return { socket, address: bound, endpoint, ...(srtla && { srtla }), ...(peers && { peers }) }
  }

  async #decide(endpoint: Endpoint, attempt: Attempt, place: Place): Promise<void> {
    const controller = new AbortController()
    this.#undecided.set(attempt, controller)
    const { signal } = controller
    const decide = async () => {
      const decision = await this.#judge(attempt, place, signal)
      endpoint.decide(attempt, decision, this.#clock.nowUs())
    }
    const { group } = attempt.agreement
    try {
      await (group ? this.#inTurn(groupKey(attempt, place.localPort), decide, signal) : decide())
    } catch (error) {
      endpoint.decide(attempt, this.#reject(error, signal), this.#clock.nowUs())
    }
    this.#undecided.delete(attempt)
  }

  async #inTurn(key: string, decide: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const turns = this.#groupTurns.get(key) ?? new Turns(1)
    this.#groupTurns.set(key, turns)
    try {
      await turns.run(decide, signal)
    } finally {
      if (turns.isIdle) this.#groupTurns.delete(key)
    }
  }

  /** Calls the accept hook, then agrees on keys with a caller that the hook accepts. */
  async #judge(attempt: Attempt, place: Place, signal: AbortSignal): Promise<Decision> {
    const { remoteAddress, remotePort, streamId, peerVersion } = attempt
    const { random = randomBytes } = this.#options
    const deriver = this.#keyDeriver
    const agree = (passphrase = this.#options.passphrase, sends = false) =>
      agreeOnKeys(attempt, { passphrase, deriver, sends, random, signal })
    const verifyEncryption = async (passphrase?: string) => {
      try {
        await this.#checks.run(() => agree(passphrase), signal)
        return undefined
      } catch (error) {
        if (error instanceof SrtError) return error
        throw error
      }
    }
    const membership = attempt.agreement.group
    const group = membership && this.#groups.find(groupKey(attempt, place.localPort))
    if (group?.isFull || (group !== undefined && group.type !== membership?.type))
      return { reject: RejectCode.GROUP }
    const isJoining = group !== undefined
    const caller = { ...place, remoteAddress, remotePort, streamId, peerVersion, isJoining }
    const admission = await this.#options.accept({ ...caller, verifyEncryption }, signal)
    if (!('sink' in admission)) return admission
    const { passphrase, onRefused, ...accepted } = admission
    if (membership !== undefined && accepted.sends) return { reject: RejectCode.GROUP }
    try {
      return { ...accepted, ...(await agree(passphrase, accepted.sends)) }
    } catch (error) {
      if (error instanceof SrtError) onRefused?.(error)
      throw error
    }
  }

  #reject(error: unknown, signal: AbortSignal): Decision {
    if (error instanceof Error && 'rejectCode' in error && typeof error.rejectCode === 'number') {
      return { reject: error.rejectCode }
    }
    // The attempt has expired and was rejected then: this decision has no effect.
    if (signal.aborted) return { reject: RejectCode.TIMEOUT }
    this.#warn(`The accept hook threw ${String(error)}. An encoder is rejected. Report this line.`)
    return { reject: RejectCode.INTERNAL }
  }

  #startTicker(): void {
    this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    const nowUs = this.#clock.nowUs()
    // The event loop waits for input only when all sockets are empty.
    const { idle } = performance.eventLoopUtilization()
    for (const { endpoint, srtla } of this.#sockets) {
      endpoint.tick(nowUs, idle > this.#idleMs)
      srtla?.tick(nowUs)
    }
    this.#idleMs = idle
    this.#dropMonitor.tick(nowUs)
    if (this.#sockets.some(({ endpoint, srtla }) => endpoint.busy || srtla?.busy)) return
    clearInterval(this.#ticker)
    this.#ticker = undefined
  }

  #warn(message: string): void {
    this.#options.onWarning?.(message)
  }
}

function wholeOf(packet: Datagram): Buffer {
  return Buffer.isBuffer(packet) ? packet : Buffer.concat(packet)
}

function addStats(
  { rejects: ofA, ...a }: ListenerStats,
  { rejects: ofB, ...b }: ListenerStats,
): ListenerStats {
  const rejects: Record<number, number> = { ...ofA }
  for (const [code, count] of Object.entries(ofB)) {
    rejects[Number(code)] = (rejects[Number(code)] ?? 0) + count
  }
  return { ...addCounts(a, b), rejects }
}

/** Adds figures of the same names. */
function addCounts<Counts extends Readonly<Record<keyof Counts, number>>>(
  a: Counts,
  b: Counts,
): Counts {
  const names = Object.keys(a) as (keyof Counts)[]
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Counts
}
