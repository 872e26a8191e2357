/**
 * Sink of an accepted publisher's connection: spreads bursts over turns of the event loop. SRT delivers up to 65,536
 * payloads behind a missing packet in one call; demuxing them at once would delay all other streams.
 *
 * @module
 */
import type { CloseReason, PayloadSink, SrtConnection } from '../srt/types.ts'
import type { Publication } from '../stream/publication.ts'
import type { AcceptedPublisher, PublisherKey } from './admission.ts'
import { asEncoder } from './srt-encoder.ts'

/** Maximum number of payloads per turn: 8 ms for the costliest media (120 µs a payload), 0.3 ms for usual media. */
const MAX_PER_TURN = 64

/** Number of payloads after which a turn is scheduled. Most turns of the event loop bring one or two, and need none. */
const TURN_CHECK = 32

type Publisher = PublisherKey & Pick<AcceptedPublisher, 'connect' | 'disconnected'>

/** Passes payloads, gaps and the end on in order, except that a close on this side discards what waits. */
export class BurstQueue implements PayloadSink {
  readonly #publisher: Publisher
  readonly #defer: (act: () => void) => void
  #publication: Pick<Publication, 'push' | 'gap' | 'end'> | undefined
  /** Payloads, and gaps as a number of packets; oldest first, from `#head` on. */
  #waiting: (Buffer | number)[] = []
  #head = 0
  #waitingBytes = 0
  /** Payloads passed on since the last scheduled turn. */
  #passedOn = 0
  #endReason: CloseReason | undefined

  /** @param defer  calls a function in a later turn of the event loop */
  constructor(publisher: Publisher, defer: (act: () => void) => void) {
    this.#publisher = publisher
    this.#defer = defer
  }

  /** Size of the waiting payloads. */
  get sizeBytes(): number {
    return this.#waitingBytes
  }

  open(connection: SrtConnection): void {
    const publisher = this.#publisher
    this.#publication = publisher.connect(asEncoder(connection, this, publisher))
  }

  push(payload: Buffer): void {
    if (this.#isWaiting || this.#passedOn === MAX_PER_TURN) {
      this.#waiting.push(payload)
      this.#waitingBytes += payload.length
    } else this.#passOn(payload)
  }

  gap(lostPackets: number): void {
    if (this.#isWaiting) this.#waiting.push(lostPackets)
    else this.#publication?.gap(lostPackets)
  }

  end(reason: CloseReason): void {
    this.#endReason = reason
    if (this.#isWaiting && reason !== 'closed') return
    this.#clear()
    this.#end(reason)
  }

  get #isWaiting(): boolean {
    return this.#head < this.#waiting.length
  }

  #passOn(payload: Buffer): void {
    if (++this.#passedOn === TURN_CHECK) this.#defer(this.#turn)
    this.#publication?.push(payload)
  }

  /** Passes on waiting payloads and gaps, then an end that waits. A field, so that no payload costs a closure. */
  readonly #turn = (): void => {
    this.#passedOn = 0
    while (this.#isWaiting && this.#passedOn < MAX_PER_TURN) {
      const item = this.#waiting[this.#head]!
      // Releases the payload now: the array itself remains until it is empty.
      this.#waiting[this.#head++] = 0
      if (typeof item === 'number') this.#publication?.gap(item)
      else {
        this.#waitingBytes -= item.length
        this.#passOn(item)
      }
    }
    if (this.#isWaiting) return
    const wasWaiting = this.#waiting.length > 0
    this.#clear()
    if (wasWaiting && this.#endReason !== undefined) this.#end(this.#endReason)
  }

  #end(reason: CloseReason): void {
    this.#publisher.disconnected()
    this.#publication?.end(reason === 'closed' ? 'stopped' : reason)
  }

  #clear(): void {
    this.#waiting = []
    this.#head = 0
    this.#waitingBytes = 0
  }
}
