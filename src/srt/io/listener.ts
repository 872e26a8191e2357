/**
 * SRT listener: accepts callers on one UDP port. Drives one `Endpoint` per socket with clock and timer.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { systemClock, type Clock } from '../../clock.ts'
import { MillraceError, RejectCode } from '../../errors.ts'
import { Endpoint } from '../connection/endpoint.ts'
import { checkPassphrase, KeyDeriver } from '../crypto/key-encryption.ts'
import type { Attempt } from '../handshake/attempt.ts'
import type { Verdict } from '../handshake/handshake-responder.ts'
import { agreeOnKeys } from '../handshake/key-agreement.ts'
import type { ListenerStats } from '../stats.ts'
import { TICK_MS } from '../timers.ts'
import type { AcceptDecision, ConnectionRequest } from '../types.ts'
import { MAX_LATENCY_MS } from '../wire/limits.ts'
import { KernelDropMonitor } from './kernel-drop-monitor.ts'
import { bindSockets, enlargeReceiveBuffer, RECEIVE_BUFFER_BYTES } from './socket.ts'

export interface ListenerOptions {
  /**
   * Numeric address, or several; `::` also listens on IPv4. On a machine with several addresses, list them: a response
   * then comes from the address that was called, which a wildcard does not ensure. Rate limits apply per local address.
   */
  readonly host: string | readonly string[]
  /** UDP port; 0 for any free port. */
  readonly port: number
  /** Min receive latency in milliseconds, used if the caller proposes less, unless `accept` returns another. */
  readonly latencyMs: number
  /** Max receive latency in milliseconds, used if the caller proposes more; default `MAX_LATENCY_MS`. */
  readonly maxLatencyMs?: number
  /** Silence of an encoder in milliseconds after which its connection ends; default 5000. */
  readonly idleTimeoutMs?: number
  /** Passphrase of callers, unless `accept` returns another; by default callers must not encrypt. */
  readonly passphrase?: string
  /** Max time in milliseconds that `accept` may take; default 2500, since callers stop after 3000. */
  readonly acceptTimeoutMs?: number
  /**
   * Decides about a caller. An exception rejects the caller: a `MillraceError` with its reject code, any other with
   * `RejectCode.INTERNAL`.
   *
   * @param signal  aborted after `acceptTimeoutMs` or by `close`; a later decision has no effect
   */
  readonly accept: (request: ConnectionRequest, signal: AbortSignal) => Promise<AcceptDecision>
  readonly clock?: Clock
  /** Random bytes for secrets and socket ids. */
  readonly random?: (bytes: number) => Buffer
  /** Receives warnings for the operator, without secrets. */
  readonly onWarning?: (message: string) => void
}

/**
 * @throws {MillraceError} `ADDRESS_IN_USE`, naming the address
 * @throws {RangeError} if `isPassphrase` is false for the passphrase, or `host` is empty
 */
export async function createListener(options: ListenerOptions): Promise<Listener> {
  if (options.passphrase !== undefined) checkPassphrase(options.passphrase)
  const addresses = [options.host].flat()
  if (addresses.length === 0)
    throw new RangeError('host is empty: set at least one address to listen on')
  return new Listener(await bindSockets(addresses, options.port), options)
}

/** A listening port. `close` ends every connection, and every sink with `end('closed')`. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #clock: Clock
  readonly #sockets: readonly Socket[]
  readonly #addresses: readonly AddressInfo[]
  readonly #endpoints: readonly Endpoint[]
  readonly #undecided = new Map<Attempt, AbortController>()
  readonly #keyDeriver = new KeyDeriver()
  readonly #dropMonitor: KernelDropMonitor
  #ticker: NodeJS.Timeout | undefined
  /** Total time that the event loop has waited for input, in milliseconds, up to the latest tick. */
  #idleMs = 0
  #closing: Promise<void> | undefined

  /** Use `createListener`. */
  constructor(sockets: readonly Socket[], options: ListenerOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#sockets = sockets
    this.#addresses = sockets.map((socket) => socket.address())
    this.#endpoints = sockets.map((socket) => this.#createEndpoint(socket))
    this.#dropMonitor = new KernelDropMonitor({
      sockets: this.#addresses,
      advice: this.#enlargeReceiveBuffers(),
      onWarning: (message) => this.#warn(message),
    })
  }

  /** @returns command that allows larger receive buffers; undefined if the kernel does not limit them */
  #enlargeReceiveBuffers(): string | undefined {
    const granted = this.#sockets.map(enlargeReceiveBuffer).find((bytes) => bytes !== undefined)
    if (granted === undefined) return undefined
    const advice = `sysctl -w net.core.rmem_max=${RECEIVE_BUFFER_BYTES}`
    this.#warn(
      `The UDP receive buffer is ${granted} of ${RECEIVE_BUFFER_BYTES} bytes. Bursts lose packets and viewers see holes. Run: ${advice}`,
    )
    return advice
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

  /** Number of datagrams that the kernel dropped since the sockets were opened; undefined without such a counter. */
  kernelDrops(): Promise<number | undefined> {
    return this.#dropMonitor.read(this.#clock.nowUs())
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

  /** Each socket has an endpoint of its own, so a response comes from the address that was called. */
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
          this.#warn(
            `A sink threw ${String(error)}. Its SRT connection is closed. Report this line.`,
          ),
      },
    })
    socket.on('message', (datagram, { address, port }) => {
      endpoint.handleDatagram(datagram, port, address, this.#clock.nowUs())
      if (endpoint.busy) this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
    })
    socket.on('error', (error) =>
      this.#warn(
        `SRT socket: ${error.message}. Encoders may lose packets. Check the network of this machine.`,
      ),
    )
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

  /** Calls the accept hook, then agrees on keys with a caller that the hook accepts. */
  async #judge(attempt: Attempt, signal: AbortSignal): Promise<Verdict> {
    const { remoteAddress, remotePort, streamId, peerVersion } = attempt
    const request = { remoteAddress, remotePort, streamId, peerVersion }
    const decision = await this.#options.accept(request, signal)
    if ('reject' in decision) return decision
    const { passphrase = this.#options.passphrase, onRefused, ...accepted } = decision
    try {
      const decryption = await agreeOnKeys(attempt, passphrase, this.#keyDeriver, signal)
      return { ...accepted, ...(decryption && { decryption }) }
    } catch (error) {
      if (error instanceof MillraceError) onRefused?.(error)
      throw error
    }
  }

  #reject(error: unknown, signal: AbortSignal): Verdict {
    if (error instanceof MillraceError) return { reject: error.rejectCode }
    // The attempt has expired and was rejected then: this verdict has no effect.
    if (signal.aborted) return { reject: RejectCode.TIMEOUT }
    this.#warn(`The accept hook threw ${String(error)}. An encoder is rejected. Report this line.`)
    return { reject: RejectCode.INTERNAL }
  }

  #tick(): void {
    const nowUs = this.#clock.nowUs()
    // The event loop waits for input only when all sockets are empty.
    const { idle } = performance.eventLoopUtilization()
    for (const endpoint of this.#endpoints) endpoint.tick(nowUs, idle > this.#idleMs)
    this.#idleMs = idle
    this.#dropMonitor.tick(nowUs)
    if (this.#endpoints.some(({ busy }) => busy)) return
    clearInterval(this.#ticker)
    this.#ticker = undefined
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
    datagrams: a.datagrams + b.datagrams,
    connectionDatagrams: a.connectionDatagrams + b.connectionDatagrams,
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
