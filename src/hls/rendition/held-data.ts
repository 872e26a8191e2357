/**
 * Timed metadata that came ahead of its time: it waits until the reference track has come as far, so that it goes into
 * the segment in which it is shown.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import type { Timeline } from '../cut/timeline.ts'

const MOST_UNITS = 128
const MOST_BYTES = 256 * 1024

/** `push` each unit, `take` whenever the reference track has moved on. */
export class HeldData {
  #units: readonly PesUnit[] = []
  #dropped = 0

  /** Units that reached no segment. */
  get dropped(): number {
    return this.#dropped
  }

  /** Copies the unit's chunks. */
  push(unit: PesUnit): void {
    this.#units = [...this.#units, { ...unit, chunks: [Buffer.concat(unit.chunks)] }]
    while (this.#isFull) {
      this.#units = this.#units.slice(1)
      this.#dropped++
    }
  }

  /** @returns the units whose time is at most `untilTicks`, and those whose time has nothing to do with the pictures */
  take(timeline: Timeline, untilTicks: number): PesUnit[] {
    if (this.#units.length === 0) return []
    const isDue = ({ ptsTicks }: PesUnit) => ptsTicks <= untilTicks || !timeline.isNear(ptsTicks)
    const due = this.#units.filter(isDue)
    this.#units = this.#units.filter((unit) => !due.includes(unit))
    return due
  }

  /** Drops the units that fail the condition. */
  retain(condition: (unit: PesUnit) => boolean): void {
    const units = this.#units.filter(condition)
    this.#dropped += this.#units.length - units.length
    this.#units = units
  }

  get #isFull(): boolean {
    const sizeBytes = this.#units.reduce((sum, unit) => sum + unit.sizeBytes, 0)
    return this.#units.length > MOST_UNITS || sizeBytes > MOST_BYTES
  }
}
