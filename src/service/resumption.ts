/**
 * Which streams of the process before this one may go on without a call of the API: those whose encoders hold a key from
 * before the start, unless they ended here since.
 *
 * @module
 */
import { STREAM_KEY_LIFETIME_SEC, type StreamKeyClaims } from '../auth/stream-key.ts'

/** More ends in the first two hours than this end all resuming. */
const MAX_ENDED = 100_000

/** `end` for each stream that is over, `allows` for each verified key of a stream that is not there. */
export class Resumption {
  readonly #startedSec: number
  readonly #ended = new Set<string>()
  #isOver: boolean

  /** @param options.startedMs  wall clock when this process started */
  constructor({ enabled, startedMs }: { readonly enabled: boolean; readonly startedMs: number }) {
    this.#isOver = !enabled
    this.#startedSec = Math.floor(startedMs / 1000)
  }

  /** The stream is not resumed from now on: it ended, or was to end although it was not there yet. */
  end(streamId: string, wallMs: number): void {
    // By then no key from before the start is valid any more.
    this.#isOver ||= wallMs >= (this.#startedSec + STREAM_KEY_LIFETIME_SEC) * 1000
    this.#isOver ||= this.#ended.size >= MAX_ENDED
    if (this.#isOver) this.#ended.clear()
    else this.#ended.add(streamId)
  }

  allows({ streamId, issuedAtSec }: StreamKeyClaims): boolean {
    // A key of the very second of the start may be one of this process.
    return !this.#isOver && issuedAtSec < this.#startedSec && !this.#ended.has(streamId)
  }
}
