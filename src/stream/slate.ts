/**
 * The slate: a clip in a loop, as the source of a stream whose encoders are away.
 *
 * @module
 */
import type { PublisherReport } from '../api/records.ts'
import { LoopedClip } from '../pace/looped-clip.ts'
import type { Clock } from '../timing/clock.ts'
import type { Encoder } from './publication.ts'

export class Slate implements Encoder {
  readonly bytes: Buffer
  readonly #clip: LoopedClip
  readonly #clock: Pick<Clock, 'nowUs'>
  readonly #startUs: number
  #sentBytes = 0

  /** @param bytes  transport stream that begins with a key frame; it is not changed */
  constructor(bytes: Buffer, clock: Pick<Clock, 'nowUs'>) {
    this.bytes = bytes
    this.#clip = new LoopedClip(bytes)
    this.#clock = clock
    this.#startUs = clock.nowUs()
  }

  get lastPacketUs(): number {
    return this.#clock.nowUs()
  }

  /** @returns payloads that are due */
  takeDue(): readonly Buffer[] {
    const payloads = this.#clip.takeUntil(this.#clock.nowUs() - this.#startUs)
    for (const { length } of payloads) this.#sentBytes += length
    return payloads
  }

  report(): PublisherReport {
    return { remote: 'slate', bitrateBps: 0, bytesReceived: this.#sentBytes }
  }

  close(): void {}
}
