/**
 * Audio on its way into a segment beside video. A unit that is ahead waits until the video has come as far, so that no
 * segment starts in silence because its sound went into the one before. Audio that comes late is placed at once:
 * players trim it, and waiting for it would delay every segment.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import { MOST_STEP_BACK_TICKS, TICKS_PER_SEC, type Timeline } from '../cut/timeline.ts'

const MOST_UNITS = 128
const MOST_BYTES = 1024 * 1024

/** So many units far from the pictures, one after the other, are no accident. */
const FAR_UNITS_IN_A_ROW = 50

/** Sound this long before the first picture is kept: it goes on into it, since a PES packet holds about as much. */
const LEAD_TICKS = 0.25 * TICKS_PER_SEC

/** For each unit `push`, then `take` until undefined, then `keep`. `take` also whenever the video has moved on. */
export class HeldAudio {
  #units: PesUnit[] = []
  #sizeBytes = 0
  #borrowed = false
  #dropped = 0
  #farInARow = 0

  /** Units that belonged to no segment: before the first picture, or with a time that fits nowhere. */
  get dropped(): number {
    return this.#dropped
  }

  /** The sound keeps another time than the pictures: none of it finds its place. */
  get outOfStep(): boolean {
    return this.#farInARow >= FAR_UNITS_IN_A_ROW
  }

  /** Borrows the unit's chunks until `keep`. */
  push(unit: PesUnit): void {
    this.#units.push(unit)
    this.#sizeBytes += unit.sizeBytes
    this.#borrowed = true
  }

  /** @returns the next unit to be placed, if its time is at most `untilTicks` */
  take(timeline: Timeline, untilTicks: number): PesUnit | undefined {
    for (let unit = this.#units[0]; unit !== undefined; unit = this.#units[0]) {
      if (!isInStep(unit, timeline, untilTicks)) {
        const stray = this.#isStray(unit, timeline, untilTicks)
        if (!stray && !this.#isFull) return undefined
        const isNear = timeline.isNear(unit.ptsTicks)
        if (stray || !isNear) {
          this.#drop()
          if (!isNear) this.#farInARow++
          continue
        }
      }
      this.#shift()
      this.#farInARow = 0
      timeline.audioTicks = unit.ptsTicks
      return unit
    }
    return undefined
  }

  /** Makes what was pushed last and not taken its own: its chunks are views into the input. */
  keep(): void {
    const last = this.#units.at(-1)
    if (this.#borrowed && last !== undefined) {
      this.#units[this.#units.length - 1] = { ...last, chunks: [Buffer.concat(last.chunks)] }
    }
    this.#borrowed = false
    while (this.#isFull) this.#drop()
  }

  /** @returns what waits for pictures that will not come, with chunks of its own; call after `keep` */
  release(): PesUnit[] {
    const units = this.#units
    this.#units = []
    this.#sizeBytes = 0
    return units
  }

  /** Drops the units that fail the condition. */
  retain(condition: (unit: PesUnit) => boolean): void {
    const units = this.#units.filter(condition)
    this.#dropped += this.#units.length - units.length
    this.#units = units
    this.#sizeBytes = units.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  }

  get #isFull(): boolean {
    return this.#units.length > MOST_UNITS || this.#sizeBytes > MOST_BYTES
  }

  /** The oldest unit will never be in step: it ended before the first picture, or its successor already is in step. */
  #isStray(unit: PesUnit, timeline: Timeline, untilTicks: number): boolean {
    const next = this.#units[1]
    return (
      (timeline.audioTicks === undefined && unit.ptsTicks < timeline.startTicks - LEAD_TICKS) ||
      (next !== undefined && isInStep(next, timeline, untilTicks))
    )
  }

  #drop(): void {
    this.#shift()
    this.#dropped++
  }

  #shift(): void {
    this.#sizeBytes -= this.#units.shift()?.sizeBytes ?? 0
  }
}

/** The video has come as far, and nothing says that the unit is of another time line. */
function isInStep(unit: PesUnit, timeline: Timeline, untilTicks: number): boolean {
  const { startTicks, audioTicks } = timeline
  const oldestTicks =
    audioTicks === undefined ? startTicks - LEAD_TICKS : audioTicks - MOST_STEP_BACK_TICKS
  const { ptsTicks } = unit
  return ptsTicks <= untilTicks && ptsTicks >= oldestTicks
}
