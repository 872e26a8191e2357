/**
 * Outputs of the packager in order. With low latency, the outputs of all renditions for one boundary leave together, so
 * that all playlists always have the same newest part (RFC 8216bis 6.2.4): a rendition that lags delays the others, by
 * at most the wait of its writer.
 *
 * @module
 */

interface Row<Writer, Output> {
  /** Renditions in order. */
  readonly writers: readonly Writer[]
  readonly outputs: Map<Writer, Output>
}

/** Calling order: `plan` each boundary, then `add` its outputs; `insert` other outputs. */
export class Rows<Writer, Output> {
  readonly #inStep: boolean
  #ready: Output[] = []
  /** Incomplete rows and what follows them, oldest first. */
  readonly #waiting: (Row<Writer, Output> | { readonly inserted: Output })[] = []

  /** @param inStep  whether the renditions wait for each other */
  constructor({ inStep }: { readonly inStep: boolean }) {
    this.#inStep = inStep
  }

  /** @param writers  renditions that will have an output for the next boundary, in order */
  plan(writers: readonly Writer[]): void {
    if (this.#inStep) this.#waiting.push({ writers, outputs: new Map() })
  }

  /** Adds the next output of a rendition. */
  add(writer: Writer, output: Output): void {
    const row = this.#waiting.find(
      (each) => 'outputs' in each && each.writers.includes(writer) && !each.outputs.has(writer),
    )
    if (row !== undefined && 'outputs' in row) row.outputs.set(writer, output)
    else this.#ready.push(output)
    this.#release()
  }

  /** Adds an output behind all boundaries so far. */
  insert(output: Output): void {
    if (this.#waiting.length === 0) this.#ready.push(output)
    else this.#waiting.push({ inserted: output })
  }

  get isEmpty(): boolean {
    return this.#ready.length === 0
  }

  /** Removes and returns the outputs that are due. */
  take(): Output[] {
    return this.#ready.splice(0)
  }

  #release(): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      if ('inserted' in first) this.#ready.push(first.inserted)
      else {
        const { writers, outputs } = first
        if (outputs.size < writers.length) return
        this.#ready.push(...writers.map((writer) => outputs.get(writer)!))
      }
      this.#waiting.shift()
    }
  }
}
