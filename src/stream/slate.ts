/**
 * The slate: a clip in a loop, as the source of a stream whose encoders are away.
 *
 * @module
 */
import type { PublisherReport } from '../api/records.ts'
import { LoopedClip } from '../pace/looped-clip.ts'
import type { Clock } from '../timing/clock.ts'
import type { Encoder } from './publication.ts'

/** Media of the past that is sent in a call beside what is due: all at once would keep other streams waiting. */
const MADE_UP_US = 500_000

export class Slate implements Encoder {
  readonly bytes: Buffer
  readonly #clip: LoopedClip
  readonly #clock: Clock
  readonly #startUs: number
  /** Media of the past that has not been sent. */
  #behindUs: number
  /** When the payload that was taken last was due. */
  #dueUs = 0
  #sentBytes = 0

  /**
   * @param bytes  transport stream that begins with a key frame; it is not changed
   * @param startMs  date at which it begins, not in the future; what is past is sent faster than in real time
   */
  constructor(bytes: Buffer, clock: Clock, startMs: number) {
    this.bytes = bytes
    this.#clip = new LoopedClip(bytes)
    this.#clock = clock
    this.#behindUs = (clock.wallMs() - startMs) * 1000
    this.#startUs = clock.nowUs() - this.#behindUs
  }

  /** Whether media of the past has not been sent: without it, there would be a hole behind the slate. */
  get isBehind(): boolean {
    return this.#behindUs > 0
  }

  get lastPacketUs(): number {
    return this.#clock.nowUs()
  }

  /** Date at which the payload that was taken last was due, in milliseconds since 1970. */
  get dateMs(): number {
    const ageUs = this.#clock.nowUs() - this.#startUs - this.#dueUs
    return this.#clock.wallMs() - ageUs / 1000
  }

  /** Yields the payloads that are due. */
  *takeDue(): Generator<Buffer, undefined> {
    this.#behindUs = Math.max(0, this.#behindUs - MADE_UP_US)
    const elapsedUs = this.#clock.nowUs() - this.#startUs
    for (const { payload, dueUs } of this.#clip.takeUntil(elapsedUs - this.#behindUs)) {
      this.#dueUs = dueUs
      this.#sentBytes += payload.length
      yield payload
    }
    return undefined
  }

  report(): PublisherReport {
    return { remote: 'slate', bitrateBps: 0, bytesReceived: this.#sentBytes }
  }

  close(): void {}
}
