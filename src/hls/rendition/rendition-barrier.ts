/**
 * Outputs of the packager in order. Those of all renditions for a boundary that was planned leave together, so that all
 * playlists with parts always have the same newest part (RFC 8216bis 6.2.4): a rendition that lags delays the others, by
 * at most the wait of its writer. Late ones, which are no parts, leave with the next boundary.
 *
 * @module
 */

const NOTHING: readonly never[] = []

interface PlannedBoundary<Writer, Output> {
  /** Renditions in order. */
  readonly writers: readonly Writer[]
  readonly outputs: Map<Writer, Output>
}

interface BarrierOptions<Output> {
  /** Returns the size of the memory that an output owns: 0 for a part, whose memory is that of its segment. */
  readonly sizeOf: (output: Output) => number
  /** Whether an output appears with the next boundary instead of its own. */
  readonly isLate: (output: Output) => boolean
  /** Longest wait of late outputs, and of those that are held. */
  readonly maxWaitMs: number
}

/**
 * Calling order: `plan` each boundary at which renditions wait for each other, then `add` their outputs; `insert` and
 * `push` other outputs.
 */
export class RenditionBarrier<Writer, Output> {
  readonly #sizeOf: (output: Output) => number
  readonly #isLate: (output: Output) => boolean
  readonly #maxWaitMs: number
  #ready: Output[] = []
  #late: Output[] = []
  /** End of the wait of the oldest; Infinity before `take` has seen it. */
  #lateUntilMs = Infinity
  /** Incomplete boundaries and what follows them, oldest first. */
  readonly #waiting: (PlannedBoundary<Writer, Output> | { readonly inserted: Output })[] = []
  /** Boundaries that lack an output of the rendition, oldest first. */
  readonly #lacking = new Map<Writer, PlannedBoundary<Writer, Output>[]>()
  #sizeBytes = 0
  /** Number of boundaries that must be complete before outputs leave. */
  #held = 0
  #heldUntilMs = 0

  constructor({ sizeOf, isLate, maxWaitMs }: BarrierOptions<Output>) {
    this.#sizeOf = sizeOf
    this.#isLate = isLate
    this.#maxWaitMs = maxWaitMs
  }

  /** Size of the outputs of incomplete boundaries, and of those that are late or held. */
  get sizeBytes(): number {
    const waiting = [...this.#late, ...this.#ready]
    return waiting.reduce((sum, output) => sum + this.#sizeOf(output), this.#sizeBytes)
  }

  /** Holds all outputs until the next boundaries are complete, or for the longest wait, which does not begin anew. */
  hold(boundaries: number, nowMs: number): void {
    this.#held = boundaries
    if (this.#heldUntilMs <= nowMs) this.#heldUntilMs = nowMs + this.#maxWaitMs
  }

  /** @param writers  renditions that will have an output for the next boundary, in order */
  plan(writers: readonly Writer[]): void {
    if (writers.length === 0) return
    const boundary = { writers, outputs: new Map<Writer, Output>() }
    this.#waiting.push(boundary)
    for (const writer of writers) {
      const lacking = this.#lacking.get(writer)
      if (lacking === undefined) this.#lacking.set(writer, [boundary])
      else lacking.push(boundary)
    }
  }

  /** Adds the next output of a rendition. */
  add(writer: Writer, output: Output): void {
    const boundary = this.#lacking.get(writer)?.shift()
    if (boundary === undefined) {
      this.#ready.push(output)
      return
    }
    boundary.outputs.set(writer, output)
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

  /** Removes and returns the outputs that are due. @param nowMs  default: none is late or held any more */
  take(nowMs = Infinity): readonly Output[] {
    if (nowMs >= this.#heldUntilMs) this.#held = 0
    if (this.#late.length > 0 && this.#lateUntilMs === Infinity)
      this.#lateUntilMs = nowMs + this.#maxWaitMs
    if (nowMs >= this.#lateUntilMs) this.#releaseLate()
    return this.#ready.length === 0 || this.#held > 0 ? NOTHING : this.#ready.splice(0)
  }

  #releaseLate(): void {
    this.#ready.push(...this.#late.splice(0))
    this.#lateUntilMs = Infinity
  }

  #release(): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      if ('inserted' in first) this.#ready.push(first.inserted)
      else {
        const { writers, outputs } = first
        if (outputs.size < writers.length) return
        this.#releaseLate()
        for (const writer of writers) {
          const output = outputs.get(writer)!
          this.#sizeBytes -= this.#sizeOf(output)
          const place = this.#isLate(output) ? this.#late : this.#ready
          place.push(output)
        }
        if (this.#held > 0) this.#held--
      }
      this.#waiting.shift()
    }
  }
}
