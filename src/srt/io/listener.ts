/**
 * Accepts SRT callers on one UDP port: sockets with an `Endpoint` each, a clock and a timer.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { systemClock, type Clock } from '../../clock.ts'
import { MillraceError, RejectCode } from '../../errors.ts'
import { IntervalLimiter } from '../../interval-limiter.ts'
import { Endpoint } from '../connection/endpoint.ts'
import type { Attempt, Verdict } from '../handshake/handshake-responder.ts'
import { readKernelDrops } from './kernel-drops.ts'
import { agreeOnKeys } from '../handshake/key-agreement.ts'
import { checkPassphrase, KeyDeriver } from '../crypto/key-encryption.ts'
import { bindSockets, enlargeReceiveBuffer } from './socket.ts'
import { TICK_MS } from '../timers.ts'
import type { AcceptDecision, ConnectionRequest, ListenerStats } from '../types.ts'
import { MAX_LATENCY_MS } from '../wire/limits.ts'

/** How often the kernel is asked what it dropped, and how long the operator is spared after a warning. */
const DROP_CHECK_US = 10_000_000
const DROP_WARNING_US = 60_000_000

export interface ListenerOptions {
  /**
   * Numeric address; `::` takes IPv4 as well. Several make one service where a machine has several: a caller hears from
   * the address that it called, which a wildcard cannot promise. Limits against floods hold for each of them.
   */
  readonly host: string | readonly string[]
  /** 0 for any that is free. */
  readonly port: number
  /** Receive latency where the caller asks for less (milliseconds). */
  readonly latencyMs: number
  /** Receive latency where the caller asks for more; default `MAX_LATENCY_MS`. */
  readonly maxLatencyMs?: number
  /** An encoder silent for this long is gone; default 5000. */
  readonly idleTimeoutMs?: number
  /** Passphrase of callers, unless `accept` names another; by default they must not encrypt. */
  readonly passphrase?: string
  /** How long `accept` may take; callers give up after 3000, default 2500. */
  readonly acceptTimeoutMs?: number
  /**
   * Decides about a caller. What it throws rejects the caller: a `MillraceError` with its own reject code.
   *
   * @param signal  aborted when an answer comes too late
   */
  readonly accept: (request: ConnectionRequest, signal: AbortSignal) => Promise<AcceptDecision>
  readonly clock?: Clock
  /** Random bytes for secrets and socket ids. */
  readonly random?: (bytes: number) => Buffer
  /** Takes sentences for the operator; they hold no secrets. */
  readonly onWarning?: (message: string) => void
}

/**
 * @throws {MillraceError} `ADDRESS_IN_USE`, naming the address
 * @throws {RangeError} where the passphrase is none, or there is no address
 */
export async function createListener(options: ListenerOptions): Promise<Listener> {
  if (options.passphrase !== undefined) checkPassphrase(options.passphrase)
  const addresses = [options.host].flat()
  if (addresses.length === 0) throw new RangeError('a listener needs an address')
  return new Listener(await bindSockets(addresses, options.port), options)
}

/** A listening port. `close` ends every connection; their sinks hear `end('closed')`. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #clock: Clock
  readonly #sockets: readonly Socket[]
  readonly #addresses: readonly AddressInfo[]
  readonly #endpoints: readonly Endpoint[]
  readonly #bufferWarning: string | undefined
  readonly #undecided = new Map<Attempt, AbortController>()
  readonly #keyDeriver = new KeyDeriver()
  #ticker: NodeJS.Timeout | undefined
  readonly #dropWarnings = new IntervalLimiter(DROP_WARNING_US)
  #toldKernelDrops = 0
  #nextDropCheckUs = 0
  #closing: Promise<void> | undefined

  /** Use `createListener`. */
  constructor(sockets: readonly Socket[], options: ListenerOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#sockets = sockets
    this.#addresses = sockets.map((socket) => socket.address())
    this.#endpoints = sockets.map((socket) => this.#createEndpoint(socket))
    this.#bufferWarning = sockets.map(enlargeReceiveBuffer).find((text) => text !== undefined)
    if (this.#bufferWarning !== undefined) this.#warn(this.#bufferWarning)
  }

  /** Address of the first socket; all others have the same port. */
  address(): AddressInfo {
    return this.#addresses[0]!
  }

  get connectionCount(): number {
    return this.#endpoints.reduce((sum, { connectionCount }) => sum + connectionCount, 0)
  }

  stats(): ListenerStats {
    return this.#endpoints.map(({ stats }) => stats).reduce(addStats)
  }

  /** Datagrams that the kernel dropped, mostly because this process read too late; undefined where it does not tell. */
  kernelDrops(): Promise<number | undefined> {
    return readKernelDrops(this.#addresses)
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown()
    return this.#closing
  }

  async #shutDown(): Promise<void> {
    clearInterval(this.#ticker)
    const closed = this.#sockets.map((socket) => once(socket, 'close'))
    for (const endpoint of this.#endpoints) endpoint.close(this.#clock.nowUs())
    for (const socket of this.#sockets) socket.close()
    await Promise.all(closed)
  }

  /** Answers leave through the socket by which the question came, and with the address that the caller knows. */
  #createEndpoint(socket: Socket): Endpoint {
    const options = this.#options
    const endpoint = new Endpoint({
      latencyMs: options.latencyMs,
      maxLatencyMs: options.maxLatencyMs ?? MAX_LATENCY_MS,
      idleTimeoutUs: (options.idleTimeoutMs ?? 5000) * 1000,
      acceptTimeoutUs: (options.acceptTimeoutMs ?? 2500) * 1000,
      random: options.random ?? randomBytes,
      nowUs: this.#clock.nowUs(),
      host: {
        transmit: (datagram, port, address) => socket.send(datagram, port, address),
        request: (attempt) => void this.#decide(endpoint, attempt),
        expire: (attempt) => this.#undecided.get(attempt)?.abort(),
        fail: (error) =>
          this.#warn(`an SRT connection was closed: its sink threw ${String(error)}`),
      },
    })
    socket.on('message', (datagram, { address, port }) => {
      endpoint.handleDatagram(datagram, port, address, this.#clock.nowUs())
      if (endpoint.busy) this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
    })
    socket.on('error', (error) => this.#warn(`SRT socket: ${error.message}`))
    return endpoint
  }

  async #decide(endpoint: Endpoint, attempt: Attempt): Promise<void> {
    const controller = new AbortController()
    this.#undecided.set(attempt, controller)
    const { signal } = controller
    const verdict = await this.#judge(attempt, signal).catch((error) => this.#reject(error, signal))
    this.#undecided.delete(attempt)
    endpoint.decide(attempt, verdict, this.#clock.nowUs())
  }

  /** Asks the accept hook, and then whether the caller encrypts as that hook wants. */
  async #judge(attempt: Attempt, signal: AbortSignal): Promise<Verdict> {
    const { remoteAddress, remotePort, streamId, peerVersion } = attempt
    const request = { remoteAddress, remotePort, streamId, peerVersion }
    const decision = await this.#options.accept(request, signal)
    if ('reject' in decision) return decision
    const { sink, passphrase = this.#options.passphrase, onRefused } = decision
    try {
      const decryption = await agreeOnKeys(attempt, passphrase, this.#keyDeriver, signal)
      return { sink, ...(decryption && { decryption }) }
    } catch (error) {
      if (error instanceof MillraceError) onRefused?.(error)
      throw error
    }
  }

  #reject(error: unknown, signal: AbortSignal): Verdict {
    if (error instanceof MillraceError) return { reject: error.rejectCode }
    // Too late: the caller has had its answer.
    if (signal.aborted) return { reject: RejectCode.TIMEOUT }
    this.#warn(`an SRT caller was rejected, because the accept hook threw ${String(error)}`)
    return { reject: RejectCode.INTERNAL }
  }

  #tick(): void {
    const nowUs = this.#clock.nowUs()
    for (const endpoint of this.#endpoints) endpoint.tick(nowUs)
    if (nowUs >= this.#nextDropCheckUs) void this.#checkKernelDrops(nowUs)
    if (this.#endpoints.some(({ busy }) => busy)) return
    clearInterval(this.#ticker)
    this.#ticker = undefined
  }

  async #checkKernelDrops(nowUs: number): Promise<void> {
    this.#nextDropCheckUs = nowUs + DROP_CHECK_US
    const drops = (await this.kernelDrops()) ?? 0
    if (drops <= this.#toldKernelDrops || !this.#dropWarnings.take('drops', nowUs)) return
    const advice = this.#bufferWarning === undefined ? '' : `; ${this.#bufferWarning}`
    this.#warn(
      `the kernel dropped ${drops - this.#toldKernelDrops} datagrams for SRT, because this process was too busy to read ` +
        `them: run fewer streams in it${advice}`,
    )
    this.#toldKernelDrops = drops
  }

  #warn(message: string): void {
    this.#options.onWarning?.(message)
  }
}

function addStats(a: ListenerStats, b: ListenerStats): ListenerStats {
  const rejects: Record<number, number> = { ...a.rejects }
  for (const [code, count] of Object.entries(b.rejects)) {
    rejects[Number(code)] = (rejects[Number(code)] ?? 0) + count
  }
  return {
    inductions: a.inductions + b.inductions,
    inductionsDropped: a.inductionsDropped + b.inductionsDropped,
    conclusionsDropped: a.conclusionsDropped + b.conclusionsDropped,
    accepted: a.accepted + b.accepted,
    duplicateHandshakes: a.duplicateHandshakes + b.duplicateHandshakes,
    rejects,
    badCookies: a.badCookies + b.badCookies,
    malformed: a.malformed + b.malformed,
    unknownSocketIds: a.unknownSocketIds + b.unknownSocketIds,
    wrongSources: a.wrongSources + b.wrongSources,
    controlPacketsDropped: a.controlPacketsDropped + b.controlPacketsDropped,
    failures: a.failures + b.failures,
  }
}
