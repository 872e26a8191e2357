/**
 * Outputs of the packager in order. With low latency, the outputs of all renditions for one boundary leave together, so
 * that all playlists always have the same newest part (RFC 8216bis 6.2.4): a rendition that lags delays the others, by
 * at most the wait of its writer.
 *
 * @module
 */

const NOTHING: readonly never[] = []

interface Row<Writer, Output> {
  /** Renditions in order. */
  readonly writers: readonly Writer[]
  readonly outputs: Map<Writer, Output>
}

export interface RowsOptions<Output> {
  /** Whether the renditions wait for each other. */
  readonly inStep: boolean
  /** Returns the size of the memory that an output owns: 0 for a part, whose memory is that of its segment. */
  readonly sizeOf: (output: Output) => number
}

/** Calling order: `plan` each boundary, then `add` its outputs; `insert` and `push` other outputs. */
export class Rows<Writer, Output> {
  readonly #inStep: boolean
  readonly #sizeOf: (output: Output) => number
  #ready: Output[] = []
  /** Incomplete rows and what follows them, oldest first. */
  readonly #waiting: (Row<Writer, Output> | { readonly inserted: Output })[] = []
  /** Rows that lack an output of the rendition, oldest first. */
  readonly #lacking = new Map<Writer, Row<Writer, Output>[]>()
  #sizeBytes = 0

  constructor({ inStep, sizeOf }: RowsOptions<Output>) {
    this.#inStep = inStep
    this.#sizeOf = sizeOf
  }

  /** Size of the outputs in incomplete rows. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** @param writers  renditions that will have an output for the next boundary, in order */
  plan(writers: readonly Writer[]): void {
    if (!this.#inStep) return
    const row = { writers, outputs: new Map<Writer, Output>() }
    this.#waiting.push(row)
    for (const writer of writers) {
      const rows = this.#lacking.get(writer)
      if (rows === undefined) this.#lacking.set(writer, [row])
      else rows.push(row)
    }
  }

  /** Adds the next output of a rendition. */
  add(writer: Writer, output: Output): void {
    const row = this.#lacking.get(writer)?.shift()
    if (row === undefined) {
      this.#ready.push(output)
      return
    }
    row.outputs.set(writer, output)
    this.#sizeBytes += this.#sizeOf(output)
    this.#release()
  }

  /** Adds an output behind all boundaries so far. */
  insert(output: Output): void {
    if (this.#waiting.length === 0) this.#ready.push(output)
    else this.#waiting.push({ inserted: output })
  }

  /** Adds an output that does not wait for a boundary. */
  push(output: Output): void {
    this.#ready.push(output)
  }

  /** Removes and returns the outputs that are due. */
  take(): readonly Output[] {
    return this.#ready.length === 0 ? NOTHING : this.#ready.splice(0)
  }

  #release(): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      if ('inserted' in first) this.#ready.push(first.inserted)
      else {
        const { writers, outputs } = first
        if (outputs.size < writers.length) return
        for (const writer of writers) {
          const output = outputs.get(writer)!
          this.#sizeBytes -= this.#sizeOf(output)
          this.#ready.push(output)
        }
      }
      this.#waiting.shift()
    }
  }
}
