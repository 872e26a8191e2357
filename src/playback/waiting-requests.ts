/**
 * Requests that wait for media: bounded in number and time, forgotten when their client leaves, and answered a few per
 * turn of the event loop, so that a crowd that waits for one part does not delay the reception of the next.
 *
 * @module
 */
import type { ServerResponse } from 'node:http'
import { sourceOf } from '../http/guard/source-address.ts'
import { nodeCallOf } from '../http/node-access.ts'
import { closingOf } from '../http/response.ts'
import { TurnQueue } from '../http/turn-queue.ts'

/**
 * Maximum number of waiting requests, in total and of one source. A connection has no limit of its own beside that of
 * HTTP/2 streams: a proxy sends the requests of many viewers over one.
 */
const MAX_WAITING = 10_000
const MAX_WAITING_PER_SOURCE = MAX_WAITING / 4

/**
 * Maximum number of requests answered per turn of the event loop, which take 3 ms: more than a turn parses, so that the
 * playlists of a release precede the parts that their readers ask for.
 */
const MAX_ANSWERED_PER_TURN = 48

/** Reason for the end of a wait; `refused`: it has not begun, since too many requests wait. */
export type WaitEnd = 'over' | 'late' | 'closing' | 'refused'

/** A request, for the time until it is answered. */
interface Exchange {
  /** See `sourceOf`; undefined also for another node, which asks on behalf of its viewers. */
  readonly source: string | undefined
  readonly hasLeft: boolean
  /** Calls `act` when the client leaves, and perhaps after the reply. */
  onceLeft(act: () => void): void
  /** Answers a request that has waited with an internal failure. */
  fail(error: unknown): void
}

/** @param fail  see `Exchange` */
export function exchangeOf(response: ServerResponse, fail: Exchange['fail']): Exchange {
  const { req: request } = response
  const closing = closingOf(response)
  return {
    source: nodeCallOf(request) ? undefined : sourceOf(request.socket.remoteAddress),
    get hasLeft() {
      return closing.destroyed
    },
    onceLeft: (act) => void closing.once('close', act),
    fail,
  }
}

interface Wait {
  /** Longest wait in milliseconds. */
  readonly maxMs: number
  /**
   * Begins to wait for the file.
   *
   * @returns forgets the request; undefined if too many readers wait
   */
  readonly begin: (onOver: () => void) => (() => void) | undefined
  /** Called once, unless the client leaves before. */
  readonly answer: (end: WaitEnd) => void
}

export class WaitingRequests {
  readonly #turns = new TurnQueue(MAX_ANSWERED_PER_TURN)
  /** Functions that end the wait of each request at once. */
  readonly #waiting = new Set<(end: WaitEnd) => void>()
  /** Number of waiting requests by source. */
  readonly #held = new Map<string, number>()
  #isClosed = false

  /** Waits for the file, and then for a turn to answer. */
  wait(exchange: Exchange, { maxMs, begin, answer }: Wait): void {
    // The client has left during a hook of an application.
    if (exchange.hasLeft) return
    if (this.#isClosed) {
      answer('closing')
      return
    }
    const { source } = exchange
    const isFull =
      this.#waiting.size >= MAX_WAITING || this.#heldBy(source) >= MAX_WAITING_PER_SOURCE
    let due: WaitEnd | undefined
    const endLater = (reason: WaitEnd): void => {
      due ??= reason
      this.#turns.add(() => end(reason))
    }
    const forget = isFull ? undefined : begin(() => endLater('over'))
    if (forget === undefined) {
      answer('refused')
      return
    }
    const timer = setTimeout(() => endLater('late'), maxMs)
    const leave = (): boolean => {
      if (!this.#waiting.delete(end)) return false
      clearTimeout(timer)
      forget()
      this.#hold(source, -1)
      return true
    }
    const end = (reason: WaitEnd): void => {
      if (!leave()) return
      try {
        answer(due ?? reason)
      } catch (error) {
        exchange.fail(error)
      }
    }
    this.#waiting.add(end)
    this.#hold(source, 1)
    exchange.onceLeft(leave)
  }

  /** Ends all waits at once, and answers the requests whose turn is still to come. */
  close(): void {
    this.#isClosed = true
    for (const end of this.#waiting) end('closing')
  }

  #heldBy(holder: string | undefined): number {
    return holder === undefined ? 0 : (this.#held.get(holder) ?? 0)
  }

  #hold(holder: string | undefined, added: 1 | -1): void {
    if (holder === undefined) return
    const count = this.#heldBy(holder) + added
    if (count === 0) this.#held.delete(holder)
    else this.#held.set(holder, count)
  }
}
