/**
 * Hands a publisher's payloads on, a few in a turn of the event loop: what SRT held behind one missing packet, up to a
 * window of 65,536, comes to it in one call, and would hold up everybody else while it becomes media.
 *
 * @module
 */
import type { CloseReason, PayloadSink } from '../srt/types.ts'

/** The costliest media takes 120 µs a payload, so that a turn takes 8 ms at most. Clean media: 0.3 ms. */
const MAX_PER_TURN = 64

/** Payloads after which the count begins anew in the next turn; not at each, since a turn brings one or two as a rule. */
const TURN_CHECK = 32

/** As `PayloadSink` without `open`. Keeps the order; `end('closed')` discards what waits, other ends come behind it. */
export class BurstQueue implements Omit<PayloadSink, 'open'> {
  readonly #sink: Omit<PayloadSink, 'open'>
  readonly #defer: (act: () => void) => void
  /** Payloads, and gaps as their number of packets; oldest first, from `#head` on. */
  #waiting: (Buffer | number)[] = []
  #head = 0
  /** Handed on since the turn began, more or less. */
  #handedOn = 0
  #endReason: CloseReason | undefined

  /** @param defer  calls a function in a later turn of the event loop */
  constructor(sink: Omit<PayloadSink, 'open'>, defer: (act: () => void) => void) {
    this.#sink = sink
    this.#defer = defer
  }

  push(payload: Buffer): void {
    if (this.#isWaiting || this.#handedOn === MAX_PER_TURN) this.#wait(payload)
    else this.#handOn(payload)
  }

  gap(lostPackets: number): void {
    if (this.#isWaiting) this.#wait(lostPackets)
    else this.#sink.gap(lostPackets)
  }

  end(reason: CloseReason): void {
    this.#endReason = reason
    if (this.#isWaiting && reason !== 'closed') return
    this.#clear()
    this.#sink.end(reason)
  }

  get #isWaiting(): boolean {
    return this.#head < this.#waiting.length
  }

  #handOn(payload: Buffer): void {
    if (++this.#handedOn === TURN_CHECK) this.#defer(() => this.#turn())
    this.#sink.push(payload)
  }

  #wait(item: Buffer | number): void {
    this.#waiting.push(item)
  }

  /** A turn of its own: hands on what waits, then the end if it came. */
  #turn(): void {
    this.#handedOn = 0
    while (this.#isWaiting && this.#handedOn < MAX_PER_TURN) {
      const item = this.#waiting[this.#head++]!
      if (typeof item === 'number') this.#sink.gap(item)
      else this.#handOn(item)
    }
    if (this.#isWaiting) return
    const wasWaiting = this.#waiting.length > 0
    this.#clear()
    if (wasWaiting && this.#endReason !== undefined) this.#sink.end(this.#endReason)
  }

  #clear(): void {
    this.#waiting = []
    this.#head = 0
  }
}
