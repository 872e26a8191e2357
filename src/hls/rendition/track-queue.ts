/**
 * Units of one track that wait for the segment they belong to, in a rendition that follows the segments of another.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import type { Segment } from '../store/segment.ts'
import { MOST_SKEW_TICKS, MOST_STEP_BACK_TICKS, TICKS_PER_SEC } from '../cut/timeline.ts'

/** What a segment covers of the timeline. */
export type Stretch = Pick<Segment, 'startTicks' | 'endTicks' | 'discontinuity'>

export interface QueuedUnit {
  readonly unit: PesUnit
  /** Order of arrival, over all tracks. */
  readonly serial: number
}

interface Entry extends QueuedUnit {
  /** Where a segment that starts with this unit begins. */
  readonly ticks: number
  /** The timestamps went back: it may be of a time line that is yet to begin. */
  readonly steppedBack: boolean
  /** How many stretches had been taken when it came. */
  readonly takenBefore: number
}

/** A key frame this close to a boundary is meant for it: half a frame off, or rounded. */
export const SNAP_TICKS = 0.05 * TICKS_PER_SEC

/** Sound this long before the start of a time line is kept: it goes on into it. */
const LEAD_TICKS = 0.25 * TICKS_PER_SEC

/** A unit that fits to none of so many stretches fits nowhere. */
const MOST_PASSES = 2

const MOST_UNITS = 8192

/** `push` units in the order of decoding; `take` those of each stretch in turn; `clear` when they belong to none. */
export class TrackQueue {
  readonly #isVideo: boolean
  #entries: Entry[] = []
  #sizeBytes = 0
  #dropped = 0
  #taken = 0
  #latestTicks = -Infinity
  #reorderTicks = 0
  /** Stretch that `isPast` was asked of last, and how many entries are known not to lie behind it. */
  #asked: Stretch | undefined
  #examined = 0
  /** A decoder that was given all units so far can go on with the next. */
  #unbroken = false

  constructor({ isVideo }: { readonly isVideo: boolean }) {
    this.#isVideo = isVideo
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Units that reached no stretch. */
  get dropped(): number {
    return this.#dropped
  }

  /** Keeps the unit with its chunks. */
  push(unit: PesUnit, serial: number): void {
    if (this.#entries.length >= MOST_UNITS) this.clear()
    const { randomAccess, ptsTicks, dtsTicks } = unit
    if (randomAccess) this.#reorderTicks = ptsTicks - dtsTicks
    const ticks = dtsTicks + this.#reorderTicks
    const steppedBack = ticks < this.#latestTicks - MOST_STEP_BACK_TICKS
    this.#latestTicks = steppedBack ? ticks : Math.max(ticks, this.#latestTicks)
    this.#entries.push({ unit, serial, ticks, steppedBack, takenBefore: this.#taken })
    this.#sizeBytes += unit.sizeBytes
  }

  /** All units of the stretch are there: one that lies behind it came. */
  isPast(stretch: Stretch): boolean {
    if (this.#asked !== stretch) this.#examined = 0
    this.#asked = stretch
    // Asked with each unit that comes: what was looked at before is not looked at again.
    for (; this.#examined < this.#entries.length; this.#examined++) {
      if (this.#place(this.#entries[this.#examined]!, stretch) === 'behind') return true
    }
    return false
  }

  /** @returns the units of a stretch; a video track begins at a random access point, and again after a loss or gap */
  take(stretch: Stretch): QueuedUnit[] {
    if (stretch.discontinuity) this.#unbroken = false
    this.#asked = undefined
    const end = this.#entries.findIndex((entry) => this.#place(entry, stretch) === 'behind')
    const due = this.#entries.splice(0, end < 0 ? this.#entries.length : end)
    const taken = due.filter((entry) => {
      this.#sizeBytes -= entry.unit.sizeBytes
      const canBeDecoded = this.#unbroken || !this.#isVideo || entry.unit.randomAccess
      this.#unbroken = canBeDecoded && this.#place(entry, stretch) === 'inside'
      return this.#unbroken
    })
    if (taken.length === 0) this.#unbroken = false
    this.#dropped += due.length - taken.length
    this.#taken++
    return taken
  }

  clear(): void {
    this.#dropped += this.#entries.length
    this.#entries = []
    this.#asked = undefined
    this.#sizeBytes = 0
    this.#unbroken = false
  }

  #place(entry: Entry, stretch: Stretch): 'inside' | 'behind' | 'nowhere' {
    const { ticks, steppedBack, unit } = entry
    const { startTicks, endTicks, discontinuity } = stretch
    const isPatient = this.#taken - entry.takenBefore < MOST_PASSES
    const isFar = ticks < startTicks - MOST_SKEW_TICKS || ticks > endTicks + MOST_SKEW_TICKS
    const snapTicks = this.#isVideo && unit.randomAccess ? SNAP_TICKS : 0
    if (isFar && !isPatient) return 'nowhere'
    if (ticks >= endTicks - snapTicks) return 'behind'
    if (steppedBack && isPatient && (isFar || !discontinuity)) return 'behind'
    const isBefore = discontinuity && ticks < startTicks - (this.#isVideo ? SNAP_TICKS : LEAD_TICKS)
    return isFar || isBefore ? 'nowhere' : 'inside'
  }
}
