/**
 * Accepts SRT callers on one UDP port: an `Endpoint` with a socket, a clock and a timer.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { systemClock, type Clock } from '../clock.ts'
import { MillraceError, RejectCode } from '../errors.ts'
import { Endpoint } from './endpoint.ts'
import type { Attempt, Verdict } from './handshake-responder.ts'
import { agreeOnKeys } from './key-agreement.ts'
import { checkPassphrase, KeyDeriver } from './key-encryption.ts'
import { enlargeReceiveBuffer, openSocket } from './socket.ts'
import { TICK_MS } from './timers.ts'
import type { AcceptDecision, ConnectionRequest, ListenerStats } from './types.ts'

export interface ListenerOptions {
  /** Numeric address; `::` takes IPv4 as well. */
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
  /** Receive latency where the caller asks for less (milliseconds). */
  readonly latencyMs: number
  /** Receive latency where the caller asks for more; default 8000. */
  readonly maxLatencyMs?: number
  /** An encoder silent for this long is gone; default 5000. */
  readonly idleTimeoutMs?: number
  /** What callers must encrypt with, 10 to 80 bytes, unless `accept` names another; by default they must not encrypt. */
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
 * @throws {MillraceError} `ADDRESS_IN_USE`
 * @throws {RangeError} where the passphrase is none
 */
export async function createListener(options: ListenerOptions): Promise<Listener> {
  if (options.passphrase !== undefined) checkPassphrase(options.passphrase)
  const socket = openSocket(options.host)
  try {
    const listening = once(socket, 'listening')
    socket.bind(options.port, options.host)
    await listening
  } catch (cause) {
    socket.close()
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause
    throw new MillraceError('ADDRESS_IN_USE', {
      message: `UDP port ${options.port} on ${options.host} is in use: choose another port for SRT`,
      cause,
    })
  }
  return new Listener(socket, options)
}

/** A listening port. `close` ends every connection; their sinks hear `end('closed')`. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #clock: Clock
  readonly #socket: Socket
  readonly #endpoint: Endpoint
  readonly #undecided = new Map<Attempt, AbortController>()
  readonly #keyDeriver = new KeyDeriver()
  #ticker: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined

  /** Use `createListener`. */
  constructor(socket: Socket, options: ListenerOptions) {
    this.#socket = socket
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#endpoint = new Endpoint({
      latencyMs: options.latencyMs,
      maxLatencyMs: options.maxLatencyMs ?? 8000,
      idleTimeoutUs: (options.idleTimeoutMs ?? 5000) * 1000,
      acceptTimeoutUs: (options.acceptTimeoutMs ?? 2500) * 1000,
      random: options.random ?? randomBytes,
      nowUs: this.#clock.nowUs(),
      host: {
        transmit: (datagram, port, address) => socket.send(datagram, port, address),
        request: (attempt) => void this.#decide(attempt),
        expire: (attempt) => this.#undecided.get(attempt)?.abort(),
        fail: (error) =>
          this.#warn(`an SRT connection was closed: its sink threw ${String(error)}`),
      },
    })
    socket.on('message', (datagram, { address, port }) => {
      this.#endpoint.handleDatagram(datagram, port, address, this.#clock.nowUs())
      if (this.#endpoint.busy) this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
    })
    socket.on('error', (error) => this.#warn(`SRT socket: ${error.message}`))
    const warning = enlargeReceiveBuffer(socket)
    if (warning !== undefined) this.#warn(warning)
  }

  address(): AddressInfo {
    return this.#socket.address()
  }

  get connectionCount(): number {
    return this.#endpoint.connectionCount
  }

  stats(): ListenerStats {
    return this.#endpoint.stats
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown()
    return this.#closing
  }

  async #shutDown(): Promise<void> {
    clearInterval(this.#ticker)
    this.#endpoint.close(this.#clock.nowUs())
    this.#socket.close()
    await once(this.#socket, 'close')
  }

  async #decide(attempt: Attempt): Promise<void> {
    const controller = new AbortController()
    this.#undecided.set(attempt, controller)
    const { signal } = controller
    const verdict = await this.#judge(attempt, signal).catch((error) => this.#reject(error, signal))
    this.#undecided.delete(attempt)
    this.#endpoint.decide(attempt, verdict, this.#clock.nowUs())
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
    this.#endpoint.tick(this.#clock.nowUs())
    if (this.#endpoint.busy) return
    clearInterval(this.#ticker)
    this.#ticker = undefined
  }

  #warn(message: string): void {
    this.#options.onWarning?.(message)
  }
}
