/**
 * Checkpoint of a stream, and its changes, one for each command.
 *
 * @module
 */
import type {
  CheckpointChange,
  CheckpointHead,
  StreamCheckpoint,
} from '../hls/playlist/checkpoint.ts'
import { mediaOptionsOf, type MediaOptions } from '../hls/media-options.ts'
import type { LivePresentation } from '../hls/playlist/live-presentation.ts'
import type { Totals } from './totals.ts'

interface CheckpointSource {
  readonly media: MediaOptions
  readonly presentation: LivePresentation
  readonly totals: Pick<Totals, 'freeSequence'>
}

/** `mark` each change; `take` all of them. */
export class CheckpointFeed {
  readonly #source: CheckpointSource
  readonly #onDue: () => void
  readonly #changed = new Set<number>()
  #isDue = false

  /** @param onDue  called with the first change after `take` */
  constructor(source: CheckpointSource, onDue: () => void) {
    this.#source = source
    this.#onDue = onDue
  }

  get checkpoint(): StreamCheckpoint {
    return { ...this.#head, rows: this.#rows(this.#source.presentation.numbers) }
  }

  /** @param mediaSequence  number of a row that has changed; undefined for a change of the head */
  mark(mediaSequence?: number): void {
    if (mediaSequence !== undefined) this.#changed.add(mediaSequence)
    if (this.#isDue) return
    this.#isDue = true
    this.#onDue()
  }

  /** @returns all changes since the previous call */
  take(): CheckpointChange {
    const numbers = [...this.#changed].toSorted((a, b) => a - b)
    const [oldest = this.#source.totals.freeSequence.media] = this.#source.presentation.numbers
    this.clear()
    return { head: this.#head, rows: this.#rows(numbers), oldest }
  }

  /** Forgets the changes since `take`. */
  clear(): void {
    this.#changed.clear()
    this.#isDue = false
  }

  get #head(): CheckpointHead {
    const { media, presentation, totals } = this.#source
    return { media: mediaOptionsOf(media), free: totals.freeSequence, ...presentation.head }
  }

  #rows(numbers: readonly number[]) {
    return numbers.flatMap((number) => this.#source.presentation.row(number) ?? [])
  }
}
