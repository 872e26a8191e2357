/**
 * Parameter sets (ITU-T H.264 7.4.1.2.1, H.265 7.4.2.4.2): a decoder needs those that a picture refers to, and an
 * encoder may send them once and never again.
 *
 * @module
 */

/** In the order in which one refers to the one before. */
export type ParameterSetKind = 'vps' | 'sps' | 'pps'

export interface ParameterSet {
  readonly kind: ParameterSetKind
  /** A set replaces the one before it of the same kind and id. */
  readonly id: number
  /** As sent, with NAL header. */
  readonly nal: Buffer
}

/** Those of a whole stream take some hundred bytes; all may be put into each key frame, were it of a single packet. */
const MAX_REMEMBERED_BYTES = 4096

/** Remembers the latest sets of one stream: `learn` those of each access unit, in order. */
export class ParameterSets {
  readonly #kinds: readonly ParameterSetKind[]
  /** By kind and id. */
  readonly #sets = new Map<string, ParameterSet>()
  #heldBytes = 0

  /** @param kinds  all that a decoder of the codec needs, in the order in which it needs them */
  constructor(kinds: readonly ParameterSetKind[]) {
    this.#kinds = kinds
  }

  learn(sets: readonly ParameterSet[]): void {
    // A picture parameter set is read by the sequence parameter set that it refers to, and void with it.
    if (sets.some((set) => set.kind === 'sps' && this.#changes(set))) this.#forget('pps')
    for (const set of sets) {
      if (this.#sets.get(keyOf(set))?.nal.equals(set.nal) !== true) this.#remember(set)
    }
  }

  /**
   * Sets that an access unit needs before its own.
   *
   * @param present  its own; an encoder that repeats some of every kind is taken to repeat what is needed
   * @returns all that are remembered, since a set stands behind those it refers to; none where nothing is needed;
   *   undefined where a kind is needed and was never seen
   */
  missingFrom(present: readonly ParameterSet[]): readonly ParameterSet[] | undefined {
    if (this.#kinds.every((kind) => present.some((set) => set.kind === kind))) return []
    const known = [...this.#sets.values()]
    const ordered = this.#kinds.map((kind) => known.filter((set) => set.kind === kind))
    return ordered.every((sets) => sets.length > 0) ? ordered.flat() : undefined
  }

  #changes(set: ParameterSet): boolean {
    return this.#sets.get(keyOf(set))?.nal.equals(set.nal) === false
  }

  #forget(kind: ParameterSetKind): void {
    for (const [key, set] of this.#sets) if (set.kind === kind) this.#remove(key)
  }

  #remember(set: ParameterSet): void {
    const key = keyOf(set)
    this.#remove(key)
    if (this.#heldBytes + set.nal.length > MAX_REMEMBERED_BYTES) return
    this.#sets.set(key, set)
    this.#heldBytes += set.nal.length
  }

  #remove(key: string): void {
    this.#heldBytes -= this.#sets.get(key)?.nal.length ?? 0
    this.#sets.delete(key)
  }
}

function keyOf({ kind, id }: ParameterSet): string {
  return `${kind} ${id}`
}
