/**
 * Publishes a transport stream file over SRT in real time, for `millrace publish` and `millrace demo`.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock, type Clock } from '../../timing/clock.ts'
import { MillraceError } from '../../errors.ts'
import {
  connect,
  parseSrtUrl,
  type Caller,
  type CloseReason,
  type SrtUrl,
} from '../../srt/index.ts'
import { readDatagrams, type MediaFile } from './paced-file.ts'
import type { PacedDatagram } from '../../pace/paced-stream.ts'
import { explainCall } from '../../service/srt-caller.ts'

const DEFAULT_LATENCY_MS = 120

/** Interval of sending: due datagrams are sent in one burst, since a timer for each would cost more than sending it. */
const TICK_MS = 4

/** Maximum sleep while waiting to send, and so the maximum delay until an abort or a lost connection is noticed. */
const MAX_SLEEP_MS = 100

/**
 * Maximum delay to make up for in a burst. After a longer delay, the rest of the file is sent later, since a burst of
 * more data would lose packets.
 */
const MAX_LAG_US = 500_000

/** Delays before the second call, the third and so on; the last value repeats. */
const CALL_DELAYS_MS = [1000, 2000, 4000, 8000, 10_000]

/**
 * Time for which rejections are retried after a lost connection: the server may be shutting down, may not have
 * restarted the stream yet, or may not have noticed the loss.
 */
const MAX_REJECTED_US = 120_000_000

export interface PublishOptions {
  /** Path, URL or bytes of a transport stream. A file is read piece by piece, however large. */
  readonly file: MediaFile
  /** `srt://host:port?streamid=…&latency=ms&passphrase=…`, see `parseSrtUrl`. */
  readonly url: string
  /** Starts over at the end of the file, on a continuous timeline. Default false. */
  readonly loop?: boolean
  /** Calls again without limit, even if the first call fails or the listener rejects. Default false. */
  readonly retry?: boolean
  /** Stops publishing: `publish` closes the connection and resolves. */
  readonly signal?: AbortSignal
  /** Receives a message for the operator when a connection opens or is lost, and when a call fails. */
  readonly onEvent?: (sentence: string) => void
  readonly clock?: Clock
}

/** Totals over all connections. */
export interface PublishReport {
  readonly connections: number
  /** Datagrams sent, without retransmissions. */
  readonly datagrams: number
  readonly retransmissions: number
  /** Datagrams dropped by the sender as too late. */
  readonly dropped: number
}

/**
 * Publishes until the end of the file or an abort. After a lost connection it calls again, with growing delays, and
 * continues the file.
 *
 * @throws {MillraceError} `CONFIG_INVALID` for the URL; `MEDIA_INVALID` for the file. Without `retry` also
 *   `SRT_REJECTED` if the listener rejects the first call, or still rejects two minutes after a lost connection, and
 *   `SRT_TIMEOUT` if the first call gets no response
 */
export async function publish(options: PublishOptions): Promise<PublishReport> {
  const publisher = new Publisher(parseUrl(options.url), options)
  try {
    await publisher.run()
  } catch (error) {
    if (options.signal?.aborted !== true) throw error
  } finally {
    await publisher.close()
  }
  return publisher.report()
}

type Target = SrtUrl & { readonly latencyMs: number }

function parseUrl(url: string): Target {
  try {
    return { latencyMs: DEFAULT_LATENCY_MS, ...parseSrtUrl(url) }
  } catch (cause) {
    throw new MillraceError('CONFIG_INVALID', { message: (cause as Error).message, cause })
  }
}

class Publisher {
  readonly #target: Target
  readonly #options: PublishOptions
  readonly #clock: Clock
  #caller: Caller | undefined
  /** Number of calls since the latest connection, including the call that opened it. */
  #calls = 0
  /** Clock time that corresponds to a `dueUs` of 0. */
  #originUs = -Infinity
  /** Time at which the latest connection was lost. */
  #lostUs = -Infinity
  #connections = 0
  #datagrams = 0
  #retransmissions = 0
  #dropped = 0

  constructor(target: Target, options: PublishOptions) {
    this.#target = target
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  async run(): Promise<void> {
    const { file, loop = false, signal } = this.#options
    for await (const datagrams of readDatagrams(file, { loop })) {
      for (const datagram of datagrams) {
        while (!this.#send(datagram)) {
          signal?.throwIfAborted()
          await this.#prepare(datagram)
        }
      }
    }
    // libsrt delivers a payload only after the latency, and on SHUTDOWN discards payloads not yet delivered.
    await sleep(this.#target.latencyMs + MAX_SLEEP_MS, undefined, { signal })
  }

  report(): PublishReport {
    return {
      connections: this.#connections,
      datagrams: this.#datagrams,
      retransmissions: this.#retransmissions,
      dropped: this.#dropped,
    }
  }

  /** Closes the connection, once the listener has had time to deliver all sent datagrams (`Caller.close`). */
  async close(): Promise<void> {
    const caller = this.#caller
    this.#caller = undefined
    await caller?.close()
    this.#count(caller)
  }

  /** @returns whether the datagram was sent; false without a connection, before its time, or with a full send buffer */
  #send({ payload, dueUs }: PacedDatagram): boolean {
    if (this.#caller === undefined || this.#waitUs(dueUs) > 0 || !this.#caller.send(payload)) {
      return false
    }
    this.#datagrams++
    return true
  }

  /** Prepares another attempt to send: calls the listener, or sleeps until the datagram is due, 4 to 100 ms. */
  async #prepare({ dueUs }: PacedDatagram): Promise<void> {
    if (this.#caller === undefined) {
      await this.#call()
    } else {
      const waitMs = this.#waitUs(dueUs) / 1000
      await sleep(Math.min(Math.max(waitMs, TICK_MS), MAX_SLEEP_MS))
    }
  }

  #waitUs(dueUs: number): number {
    const nowUs = this.#clock.nowUs()
    if (nowUs - this.#originUs - dueUs > MAX_LAG_US) this.#originUs = nowUs - dueUs
    return this.#originUs + dueUs - nowUs
  }

  async #call(): Promise<void> {
    const { host, port } = this.#target
    const { signal, retry = false } = this.#options
    if (this.#calls > 0) await sleep(this.#callDelayMs, undefined, { signal })
    this.#calls++
    try {
      const caller = await connect({ ...this.#target, signal })
      this.#calls = 1
      this.#connections++
      this.#caller = caller
      void caller.closed.then((reason) => this.#handleLoss(caller, reason))
      this.#notify(`publishing to ${host}:${port}`)
    } catch (cause) {
      if (signal?.aborted === true) throw cause
      const error = explainCall(cause, host)
      const retriesRejection = this.#clock.nowUs() - this.#lostUs < MAX_REJECTED_US
      const isFinal = error.code === 'SRT_REJECTED' ? !retriesRejection : this.#connections === 0
      if (isFinal && !retry) throw error
      this.#notify(`${error.message}; ${this.#outlook}`)
    }
  }

  #handleLoss(caller: Caller, reason: CloseReason): void {
    if (caller !== this.#caller) return
    this.#caller = undefined
    this.#lostUs = this.#clock.nowUs()
    this.#count(caller)
    this.#notify(`the connection is lost (${reason}); ${this.#outlook}`)
  }

  get #callDelayMs(): number {
    return CALL_DELAYS_MS[Math.min(this.#calls, CALL_DELAYS_MS.length) - 1]!
  }

  get #outlook(): string {
    return `calling again in ${this.#callDelayMs / 1000} s`
  }

  #count(caller: Caller | undefined): void {
    const stats = caller?.stats()
    this.#retransmissions += stats?.pktRetransTotal ?? 0
    this.#dropped += stats?.pktSndDropTotal ?? 0
  }

  #notify(sentence: string): void {
    this.#options.onEvent?.(sentence)
  }
}
