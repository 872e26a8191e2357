/**
 * Units of one track on their way into the segments of a rendition. A unit waits until the reference track has come as
 * far, so that no segment starts without the audio of its first frames; one that is late is placed at once, since players
 * trim it and waiting would delay every segment.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { storePackets } from '../../mpegts/mux/packet-memory.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Track } from '../../mpegts/track.ts'
import { MAX_SKEW_TICKS, MAX_STEP_BACK_TICKS, SNAP_TICKS } from '../cut/timeline.ts'

export interface UnitQueueOptions {
  readonly kind: Track['kind']
  /** The segments are cut by this track: its units are never early or late. */
  readonly reference: boolean
  /** Bound of the units that wait. */
  readonly maxBytes: number
}

/** Times of the units that are placed now. */
export interface PlacingWindow {
  /** Start of the timeline. */
  readonly timelineStartTicks: number
  /** Later units belong to another segment, or wait until the reference track has come as far. */
  readonly untilTicks: number
}

export interface QueuedUnit {
  readonly unit: PesUnit
  /** Time at which a segment that starts with this unit begins. */
  readonly ticks: number
  /** Copy of its packets; undefined as long as they are views into the input. */
  readonly packets?: Buffer
}

/** Units up to this long before the start of a timeline are kept: an audio PES packet lasts about as long. */
const LEAD_TICKS: Readonly<Record<Track['kind'], number>> = {
  video: SNAP_TICKS,
  audio: 0.25 * TICKS_PER_SEC,
  data: Infinity,
}

/** Longest wait, in media of the track itself, of a unit that is ahead of the reference track. */
const MAX_AHEAD_TICKS = 20 * TICKS_PER_SEC

/** Longest wait of a unit that stepped back, for the reference track to do the same. */
const MAX_BACK_TICKS = 5 * TICKS_PER_SEC

const MAX_UNITS = 8192

/** Consecutive units far from the reference track that mean another clock. */
const FAR_UNITS_IN_A_ROW = 50

/**
 * `push` each unit, `take` until undefined, then `keep`; `take` also whenever the reference track has moved on.
 * `startTimeline` where the reference track does.
 */
export class UnitQueue {
  readonly kind: Track['kind']
  readonly reference: boolean
  readonly #maxBytes: number
  #units: QueuedUnit[] = []
  #sizeBytes = 0
  #dropped = 0
  #farInARow = 0
  #reorderTicks = 0
  /** Time of the newest unit taken in this timeline. */
  #takenTicks: number | undefined
  /** A decoder that got all units so far can decode the next. */
  #decodable = false

  constructor({ kind, reference, maxBytes }: UnitQueueOptions) {
    this.kind = kind
    this.reference = reference
    this.#maxBytes = maxBytes
  }

  /** Bytes that wait. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Units that reached no segment. */
  get dropped(): number {
    return this.#dropped
  }

  /** The track is on another clock than the reference track: none of it is placed. */
  get outOfStep(): boolean {
    return this.#farInARow >= FAR_UNITS_IN_A_ROW
  }

  /** Borrows the unit's chunks until `keep`. */
  push(unit: PesUnit): void {
    const { randomAccess, ptsTicks, dtsTicks } = unit
    if (randomAccess) this.#reorderTicks = ptsTicks - dtsTicks
    this.#units.push({ unit, ticks: dtsTicks + this.#reorderTicks })
    this.#sizeBytes += unit.sizeBytes
  }

  /** @returns the next unit to be placed */
  take(window: PlacingWindow): QueuedUnit | undefined {
    for (let head = this.#units[0]; head !== undefined; head = this.#units[0]) {
      if (!this.#isDue(head, window)) {
        const isStray = this.#isStray(head, window)
        if (!isStray && !this.#isOverdue(head, window)) return undefined
        const isFar = Math.abs(head.ticks - window.untilTicks) > MAX_SKEW_TICKS
        if (isStray || isFar) {
          this.#drop()
          if (isFar) this.#farInARow++
          continue
        }
      }
      this.#shift()
      this.#farInARow = 0
      this.#takenTicks = head.ticks
      if (this.kind === 'video' && !this.reference) {
        this.#decodable ||= head.unit.randomAccess
        if (!this.#decodable) {
          this.#dropped++
          continue
        }
      }
      return head
    }
    return undefined
  }

  /** The newest unit lies beyond: all that belongs before it has arrived. */
  isPast(window: PlacingWindow): boolean {
    const newest = this.#units.at(-1)
    return newest !== undefined && !this.#isDue(newest, window)
  }

  /** Copies the newest unit, unless it was taken: its chunks are views into the input. */
  keep(): void {
    const last = this.#units.at(-1)
    if (last === undefined) return
    if (last.packets === undefined) {
      const { unit, ticks } = last
      const packets = storePackets(unit.chunks, unit.sizeBytes)
      this.#units[this.#units.length - 1] = { unit: { ...unit, chunks: [packets] }, ticks, packets }
    }
    while (this.#isFull) this.#drop()
  }

  startTimeline(): void {
    this.#takenTicks = undefined
    this.#decodable = false
  }

  /** A segment lacks units of this track: the next unit taken is a random access point. */
  interrupt(): void {
    this.#decodable = false
  }

  /** Removes and returns all that wait, to be pushed elsewhere. */
  release(): PesUnit[] {
    const units = this.#units.map(({ unit }) => unit)
    this.#units = []
    this.#sizeBytes = 0
    return units
  }

  /** Drops all that wait. */
  clear(): void {
    this.#dropped += this.release().length
    this.#decodable = false
  }

  get #isFull(): boolean {
    return this.#units.length > MAX_UNITS || this.#sizeBytes > this.#maxBytes
  }

  /** The reference track has come as far, and nothing says that the unit is of another timeline. */
  #isDue({ ticks, unit }: QueuedUnit, { timelineStartTicks, untilTicks }: PlacingWindow): boolean {
    if (this.reference) return true
    // The clock of metadata may have nothing to do with the program's: then it is placed as it comes.
    if (this.kind === 'data' && Math.abs(ticks - untilTicks) > MAX_SKEW_TICKS) return true
    const snapTicks = this.kind === 'video' && unit.randomAccess ? SNAP_TICKS : 0
    return ticks <= untilTicks - snapTicks && ticks >= this.#oldestTicks(timelineStartTicks)
  }

  #oldestTicks(timelineStartTicks: number): number {
    if (this.kind === 'data') return -Infinity
    return this.#takenTicks === undefined
      ? timelineStartTicks - LEAD_TICKS[this.kind]
      : this.#takenTicks - MAX_STEP_BACK_TICKS
  }

  /** The unit will never be due: it ended before the timeline began, or its successor is due already. */
  #isStray({ ticks }: QueuedUnit, window: PlacingWindow): boolean {
    if (this.kind === 'data') return false
    const isBack = ticks < this.#oldestTicks(window.timelineStartTicks)
    if (isBack && this.#takenTicks === undefined) return true
    const next = this.#units[1]
    const isOutOfOrder = isBack || ticks > window.untilTicks
    return isOutOfOrder && next !== undefined && this.#isDue(next, window)
  }

  /** The units behind it show that it has waited long enough. */
  #isOverdue({ ticks }: QueuedUnit, { untilTicks }: PlacingWindow): boolean {
    const newest = this.#units.at(-1)!
    const maxTicks = ticks > untilTicks ? MAX_AHEAD_TICKS : MAX_BACK_TICKS
    return this.#isFull || Math.abs(newest.ticks - ticks) > maxTicks
  }

  #drop(): void {
    this.#shift()
    this.#dropped++
    this.#decodable = false
  }

  #shift(): void {
    this.#sizeBytes -= this.#units.shift()?.unit.sizeBytes ?? 0
  }
}
