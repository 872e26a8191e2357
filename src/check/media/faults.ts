/**
 * Faults of a segment or part, the first of each kind.
 *
 * @module
 */
import type { FaultKind, MediaFault } from './inspected-media.ts'

export class Faults {
  readonly #texts = new Map<FaultKind, string>()

  get list(): readonly MediaFault[] {
    return [...this.#texts].map(([kind, text]) => ({ kind, text }))
  }

  add(kind: FaultKind, text: string): void {
    if (!this.#texts.has(kind)) this.#texts.set(kind, text)
  }
}
