/**
 * Changes that a screen reader tells: of state and of warnings, never of figures.
 *
 * @module
 */
import { byId } from './dom.ts'
import { sourceOf, stateOf } from './format.ts'
import type { StreamRow } from './wire.ts'

/** Time between two announcements; what changes meanwhile is told together. */
const INTERVAL_MS = 5000

/** Maximum number of changes in an announcement. */
const MAX_TOLD = 3

export class Announcer {
  readonly #region = byId('announcer')
  #known = new Map<string, StreamRow>()
  #changes: string[] = []
  #toldMs = -Infinity

  /** Forgets the rows, since another part of the list follows. */
  reset(): void {
    this.#known.clear()
    this.#changes = []
  }

  /** @param isOpen  whether the service answers */
  noteConnection(isOpen: boolean): void {
    const sentence = isOpen ? 'The service answers again.' : 'No data from the service.'
    this.#region.textContent = sentence
  }

  observe(rows: readonly StreamRow[], nowMs: number): void {
    for (const row of rows) {
      const before = this.#known.get(row.id)
      if (before !== undefined) this.#changes.push(...changesOf(before, row))
    }
    this.#known = new Map(rows.map((row) => [row.id, row]))
    if (this.#changes.length === 0 || nowMs - this.#toldMs < INTERVAL_MS) return
    const told = this.#changes.slice(0, MAX_TOLD)
    const others = this.#changes.length - told.length
    this.#region.textContent = [...told, ...(others > 0 ? [`${others} more changes`] : [])].join(
      '. ',
    )
    this.#changes = []
    this.#toldMs = nowMs
  }
}

function changesOf(before: StreamRow, now: StreamRow): string[] {
  const known = new Set(before.warnings.map(({ code }) => code))
  const begun = now.warnings.filter(({ code }) => !known.has(code))
  const [state, earlier] = [now, before].map((row) => `${stateOf(row)} ${sourceOf(row)}`.trim())
  return [
    ...(state === earlier ? [] : [`${now.id}: ${state}`]),
    ...begun.map(({ message }) => `${now.id}: ${message}`),
  ]
}
