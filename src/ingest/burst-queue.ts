/**
 * Queue that spreads a publisher's bursts over turns of the event loop. SRT delivers up to 65,536 payloads behind a
 * missing packet in one call; demuxing them at once would delay all other streams.
 *
 * @module
 */
import type { LeaveReason, Publication } from '../stream/publication.ts'

/** Maximum number of payloads per turn: 8 ms for the costliest media (120 µs a payload), 0.3 ms for usual media. */
const MAX_PER_TURN = 64

/** Number of payloads after which a turn is scheduled. Most turns of the event loop bring one or two, and need none. */
const TURN_CHECK = 32

/** Receiver of an encoder's payloads. */
export type MediaSink = Pick<Publication, 'push' | 'gap' | 'end'>

/** Passes payloads, gaps and the end on in order, except that `end('stopped')` discards what waits. */
export class BurstQueue implements MediaSink {
  readonly #sink: MediaSink
  readonly #defer: (act: () => void) => void
  /** Payloads, and gaps as a number of packets; oldest first, from `#head` on. */
  #waiting: (Buffer | number)[] = []
  #head = 0
  #waitingBytes = 0
  /** Payloads passed on since the last scheduled turn. */
  #passedOn = 0
  #endReason: LeaveReason | undefined

  /** @param defer  calls a function in a later turn of the event loop */
  constructor(sink: MediaSink, defer: (act: () => void) => void) {
    this.#sink = sink
    this.#defer = defer
  }

  /** Size of the waiting payloads. */
  get sizeBytes(): number {
    return this.#waitingBytes
  }

  push(payload: Buffer): void {
    if (this.#isWaiting || this.#passedOn === MAX_PER_TURN) {
      this.#waiting.push(payload)
      this.#waitingBytes += payload.length
    } else this.#passOn(payload)
  }

  gap(lostPackets: number): void {
    if (this.#isWaiting) this.#waiting.push(lostPackets)
    else this.#sink.gap(lostPackets)
  }

  end(reason: LeaveReason): void {
    this.#endReason = reason
    if (this.#isWaiting && reason !== 'stopped') return
    this.#clear()
    this.#sink.end(reason)
  }

  get #isWaiting(): boolean {
    return this.#head < this.#waiting.length
  }

  #passOn(payload: Buffer): void {
    if (++this.#passedOn === TURN_CHECK) this.#defer(this.#turn)
    this.#sink.push(payload)
  }

  /** Passes on waiting payloads and gaps, then an end that waits. A field, so that no payload costs a closure. */
  readonly #turn = (): void => {
    this.#passedOn = 0
    while (this.#isWaiting && this.#passedOn < MAX_PER_TURN) {
      const item = this.#waiting[this.#head]!
      // Releases the payload now: the array itself remains until it is empty.
      this.#waiting[this.#head++] = 0
      if (typeof item === 'number') this.#sink.gap(item)
      else {
        this.#waitingBytes -= item.length
        this.#passOn(item)
      }
    }
    if (this.#isWaiting) return
    const wasWaiting = this.#waiting.length > 0
    this.#clear()
    if (wasWaiting && this.#endReason !== undefined) this.#sink.end(this.#endReason)
  }

  #clear(): void {
    this.#waiting = []
    this.#head = 0
    this.#waitingBytes = 0
  }
}
