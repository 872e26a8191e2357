/**
 * A real-time encoder without an encoder: publishes a transport stream file over SRT, as `millrace publish` and
 * `millrace demo` do.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock, type Clock } from '../clock.ts'
import { MillraceError } from '../errors.ts'
import { connect, type Caller, type CloseReason } from '../srt/index.ts'
import { readDatagrams, type MediaFile } from './paced-file.ts'
import type { Datagram } from './paced-stream.ts'
import { parsePublishUrl, type PublishTarget } from './publish-url.ts'

/** Datagrams leave in bursts of what became due meanwhile: a timer for each would cost more than sending it. */
const TICK_MS = 4

/** An abort or a lost link is noticed within this time. */
const LONGEST_NAP_MS = 100

/** Whoever was held up for longer goes on from where it was, instead of sending in a burst what a live source would have lost. */
const MAX_LAG_US = 500_000

/** Before the second call, the third and so on; the last one from then on. */
const CALL_DELAYS_MS = [1000, 2000, 4000, 8000, 10_000]

/**
 * Who published before may be refused for a while: by a server that is going down, that has come back and not started the
 * stream yet, or that has yet to miss the lost connection.
 */
const MAX_REFUSED_US = 120_000_000

export interface PublishOptions {
  /** Path, URL or bytes of a transport stream. A file is read piece by piece, however large. */
  readonly file: MediaFile
  /** `srt://host:port?streamid=…&latency=ms&passphrase=…`, see `parsePublishUrl`. */
  readonly url: string
  /** Starts over at the end of the file, without a seam. Default false. */
  readonly loop?: boolean
  /** Never gives up: calls again also where the first call fails, and however long the listener refuses. Default false. */
  readonly retry?: boolean
  /** Ends the publishing cleanly: `publish` resolves. */
  readonly signal?: AbortSignal
  /** Takes a sentence for a person whenever the connection changes. */
  readonly onEvent?: (sentence: string) => void
  readonly clock?: Clock
}

/** What was sent, over all connections. */
export interface PublishReport {
  readonly connections: number
  /** Without retransmissions. */
  readonly datagrams: number
  readonly retransmissions: number
  /** Given up by the sender: too late. */
  readonly dropped: number
}

/**
 * Publishes until the end of the file or the signal. A link that drops is called again, with growing pauses, and the
 * file goes on where it was.
 *
 * @throws {MillraceError} `CONFIG_INVALID` for the URL, `MEDIA_INVALID` for the file, `SRT_REJECTED` where the listener
 *   refuses the first call, or who comes back for two minutes, `SRT_TIMEOUT` where nobody answers the first call
 */
export async function publish(options: PublishOptions): Promise<PublishReport> {
  const publisher = new Publisher(parsePublishUrl(options.url), options)
  try {
    await publisher.run()
  } catch (error) {
    if (options.signal?.aborted !== true) throw error
  } finally {
    await publisher.hangUp()
  }
  return publisher.report()
}

class Publisher {
  readonly #target: PublishTarget
  readonly #options: PublishOptions
  readonly #clock: Clock
  #caller: Caller | undefined
  /** Calls since the last one that succeeded. */
  #calls = 0
  /** When, on the clock, the datagram due at 0 was. */
  #originUs = -Infinity
  /** When the latest connection was lost. */
  #lostUs = -Infinity
  #connections = 0
  #datagrams = 0
  #retransmissions = 0
  #dropped = 0

  constructor(target: PublishTarget, options: PublishOptions) {
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
    // libsrt hands a payload on when its latency is over, and forgets what it holds when it hears SHUTDOWN.
    await sleep(this.#target.latencyMs + LONGEST_NAP_MS, undefined, { signal })
  }

  report(): PublishReport {
    return {
      connections: this.#connections,
      datagrams: this.#datagrams,
      retransmissions: this.#retransmissions,
      dropped: this.#dropped,
    }
  }

  /** Returns when the listener has everything, or would not want it any more. */
  async hangUp(): Promise<void> {
    const caller = this.#caller
    this.#caller = undefined
    await caller?.close()
    this.#count(caller)
  }

  /** Whether the datagram is on its way: it is due, the link stands and has room. */
  #send({ payload, dueUs }: Datagram): boolean {
    if (this.#caller === undefined || this.#waitUs(dueUs) > 0 || !this.#caller.send(payload)) {
      return false
    }
    this.#datagrams++
    return true
  }

  /** Does what a datagram that could not be sent needs first: a connection, or time. */
  async #prepare({ dueUs }: Datagram): Promise<void> {
    if (this.#caller === undefined) {
      await this.#call()
    } else {
      const waitMs = this.#waitUs(dueUs) / 1000
      await sleep(Math.min(Math.max(waitMs, TICK_MS), LONGEST_NAP_MS))
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
      void caller.closed.then((reason) => this.#lose(caller, reason))
      this.#tell(`publishing to ${host}:${port}`)
    } catch (cause) {
      if (signal?.aborted === true) throw cause
      const error = asRefusal(cause, host)
      const isPatient = this.#clock.nowUs() - this.#lostUs < MAX_REFUSED_US
      const isFinal = error.code === 'SRT_REJECTED' ? !isPatient : this.#connections === 0
      if (isFinal && !retry) throw error
      this.#tell(`${error.message}; ${this.#outlook}`)
    }
  }

  #lose(caller: Caller, reason: CloseReason): void {
    if (caller !== this.#caller) return
    this.#caller = undefined
    this.#lostUs = this.#clock.nowUs()
    this.#count(caller)
    this.#tell(`the connection is lost (${reason}); ${this.#outlook}`)
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

  #tell(sentence: string): void {
    this.#options.onEvent?.(sentence)
  }
}

/** What a system says of a name it cannot resolve or a network it has not, in our own terms. */
function asRefusal(cause: unknown, host: string): MillraceError {
  if (cause instanceof MillraceError) return cause
  const message = `${host} cannot be reached: ${(cause as Error).message}`
  return new MillraceError('SRT_TIMEOUT', { message, cause })
}
