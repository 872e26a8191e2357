/**
 * Parameter sets (ITU-T H.264 7.4.1.2.1, H.265 7.4.2.4.2), remembered because an encoder may send them only once.
 *
 * @module
 */

/** Kinds of parameter sets; each refers to the one listed before it. */
export type ParameterSetKind = 'vps' | 'sps' | 'pps'

export interface ParameterSet {
  readonly kind: ParameterSetKind
  /** Identifier within the kind: a set replaces the previous one of the same kind and id. */
  readonly id: number
  /** NAL unit as sent, with its header. */
  readonly nal: Buffer
}

/** Maximum total size of the remembered sets, since all may be inserted into a key frame; usually a few 100 bytes. */
const MAX_REMEMBERED_BYTES = 4096

/** Latest parameter sets of one stream: `push` those of every access unit in order. */
export class ParameterSets {
  readonly #kinds: readonly ParameterSetKind[]
  /** Sets by kind and id. */
  readonly #sets = new Map<string, ParameterSet>()
  #heldBytes = 0

  /** @param kinds  kinds that a decoder needs, each after those it refers to */
  constructor(kinds: readonly ParameterSetKind[]) {
    this.#kinds = kinds
  }

  push(sets: readonly ParameterSet[]): void {
    // A PPS is parsed with the SPS that it refers to, so a changed SPS invalidates it.
    if (sets.some((set) => set.kind === 'sps' && this.#changes(set))) this.#forget('pps')
    for (const set of sets) {
      if (this.#sets.get(keyOf(set))?.nal.equals(set.nal) !== true) this.#remember(set)
    }
  }

  /**
   * Finds the sets to insert before those of an access unit.
   *
   * @param present  sets of the access unit, which is complete if it has a set of every kind
   * @returns empty for a complete access unit, else all remembered sets, each after those it refers to; undefined while
   *   a kind is unknown
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
