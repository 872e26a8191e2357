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
  /** Date of its first frame, in milliseconds since 1970. */
  readonly startMs: number
  readonly #clip: LoopedClip
  readonly #clock: Pick<Clock, 'nowUs'>
  readonly #startUs: number
  /** Media of the past that has not been sent. */
  #behindUs: number
  #sentBytes = 0

  /**
   * @param bytes  transport stream that begins with a key frame; it is not changed
   * @param startMs  date at which it begins, not in the future; what is past is sent faster than in real time
   */
  constructor(bytes: Buffer, clock: Clock, startMs: number) {
    this.bytes = bytes
    this.startMs = startMs
    this.#clip = new LoopedClip(bytes)
    this.#clock = clock
    this.#behindUs = (clock.wallMs() - startMs) * 1000
    this.#startUs = clock.nowUs() - this.#behindUs
  }

  get lastPacketUs(): number {
    return this.#clock.nowUs()
  }

  /** @returns payloads that are due */
  takeDue(): readonly Buffer[] {
    this.#behindUs = Math.max(0, this.#behindUs - MADE_UP_US)
    const elapsedUs = this.#clock.nowUs() - this.#startUs
    const payloads = this.#clip.takeUntil(elapsedUs - this.#behindUs)
    for (const { length } of payloads) this.#sentBytes += length
    return payloads
  }

  /** Yields the payloads of the past that have not been sent. */
  *takeRest(): Generator<Buffer, undefined> {
    while (this.#behindUs > 0) yield* this.takeDue()
    return undefined
  }

  report(): PublisherReport {
    return { remote: 'slate', bitrateBps: 0, bytesReceived: this.#sentBytes }
  }

  close(): void {}
}
