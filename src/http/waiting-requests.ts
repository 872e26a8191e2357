/**
 * Requests that wait for media: bounded in number and time, forgotten when their client leaves, and answered a few per
 * turn of the event loop, so that a crowd that waits for one part does not delay the reception of the next.
 *
 * @module
 */
import type { EventEmitter } from 'node:events'
import type { Http2ServerResponse } from 'node:http2'
import type { FastifyReply } from 'fastify'
import { MAX_REQUESTS_PER_TURN, TurnQueue } from './guard/turn-queue.ts'

/** Maximum number of waiting requests, in total and of one connection: a player needs two for each rendition. */
const MAX_WAITING = 10_000
const MAX_WAITING_PER_CONNECTION = 32

/** Reason for the end of a wait; `refused`: it has not begun, since too many requests wait. */
export type WaitEnd = 'over' | 'late' | 'left' | 'closing' | 'refused'

export class WaitingRequests {
  readonly #turns = new TurnQueue(MAX_REQUESTS_PER_TURN)
  readonly #waiting = new Set<AbortController>()
  /** Number of waiting requests by connection. */
  readonly #perConnection = new Map<object, number>()

  /** Number of waiting requests. */
  get count(): number {
    return this.#waiting.size
  }

  /**
   * Waits at most `maxMs`, and then for a turn to reply.
   *
   * @param until  what the request waits for; rejects when the signal aborts
   */
  async wait(
    reply: FastifyReply,
    maxMs: number,
    until: (signal: AbortSignal) => Promise<void>,
  ): Promise<WaitEnd> {
    const { connection, exchange } = partiesOf(reply)
    const ownCount = this.#perConnection.get(connection) ?? 0
    if (this.count >= MAX_WAITING || ownCount >= MAX_WAITING_PER_CONNECTION) return 'refused'
    const end = new AbortController()
    const leave = () => end.abort('left')
    const timer = setTimeout(() => end.abort('late'), maxMs)
    exchange.once('close', leave)
    this.#waiting.add(end)
    this.#perConnection.set(connection, ownCount + 1)
    try {
      await until(end.signal).catch((error: unknown) => {
        if (!end.signal.aborted) throw error
      })
      if (!end.signal.aborted || end.signal.reason === 'late') await this.#turn()
      return end.signal.aborted ? (end.signal.reason as WaitEnd) : 'over'
    } finally {
      clearTimeout(timer)
      exchange.off('close', leave)
      this.#waiting.delete(end)
      this.#release(connection)
    }
  }

  /** Ends all waits. */
  close(): void {
    for (const end of this.#waiting) end.abort('closing')
  }

  #turn(): Promise<void> | undefined {
    if (this.#turns.take()) return undefined
    return new Promise((resolve) => {
      this.#turns.add(resolve)
    })
  }

  #release(connection: object): void {
    const left = this.#perConnection.get(connection)! - 1
    if (left === 0) this.#perConnection.delete(connection)
    else this.#perConnection.set(connection, left)
  }
}

/** Connection of a request, and the emitter of `close` when its client leaves. */
function partiesOf({ raw }: FastifyReply): { connection: object; exchange: EventEmitter } {
  if (raw.req.httpVersionMajor < 2) return { connection: raw.req.socket, exchange: raw }
  // A reply of HTTP/2 to HEAD emits no `close` before it begins; its stream does.
  const { stream } = raw as unknown as Http2ServerResponse
  return { connection: stream.session ?? stream, exchange: stream }
}
