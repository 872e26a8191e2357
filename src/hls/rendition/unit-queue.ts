/**
 * Queue of the units of one track for the segments of a rendition. A unit waits until the reference track reaches its
 * time, so that no segment starts without the audio of its first frames. A late unit is placed at once: players trim
 * it, and waiting would delay every segment.
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
  /** Whether this is the reference track, whose units are never early or late. */
  readonly reference: boolean
  /** Maximum size of the waiting units. */
  readonly maxBytes: number
}

/** Range of times whose units may be placed now. */
export interface PlacingWindow {
  /** Start of the timeline. */
  readonly timelineStartTicks: number
  /** Time after which units belong to another segment, or wait for the reference track. */
  readonly untilTicks: number
}

export interface QueuedUnit {
  readonly unit: PesUnit
  /** Start time of a segment that begins with this unit, see `Timeline.timeOf`. */
  readonly ticks: number
  /** Copy of its packets; undefined while they are views into the input. */
  readonly packets?: Buffer
}

/** Maximum time of a unit before the start of its timeline; for audio, the usual duration of a PES packet. */
const LEAD_TICKS: Readonly<Record<Track['kind'], number>> = {
  video: SNAP_TICKS,
  audio: 0.25 * TICKS_PER_SEC,
  data: Infinity,
}

/** Longest wait of a unit that is ahead of the reference track, measured in media of its own track. */
const MAX_AHEAD_TICKS = 20 * TICKS_PER_SEC

/** Longest wait of a unit whose timestamp went back until the reference track's does too, in media of its own track. */
const MAX_BACK_TICKS = 5 * TICKS_PER_SEC

const MAX_UNITS = 8192

/** Consecutive units far from the reference track after which the track counts as on another clock. */
const FAR_UNITS_IN_A_ROW = 50

/**
 * Calling order: `push` each unit, `take` until undefined, then `keep`; `take` also when the reference track has
 * advanced. `startTimeline` when the reference track starts one.
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
  /** Whether the next unit can be decoded after those taken so far. */
  #decodable = false

  constructor({ kind, reference, maxBytes }: UnitQueueOptions) {
    this.kind = kind
    this.reference = reference
    this.#maxBytes = maxBytes
  }

  /** Size of the waiting units. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Units that reached no segment. */
  get dropped(): number {
    return this.#dropped
  }

  /** Whether the track is on another clock than the reference track, so that its units are dropped. */
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

  /** Whether a unit after the window has arrived, so that the window is complete. */
  isPast(window: PlacingWindow): boolean {
    const newest = this.#units.at(-1)
    return newest !== undefined && !this.#isDue(newest, window)
  }

  /** Copies the newest unit, whose chunks are views into the input, unless it was taken. Drops the oldest when full. */
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

  /** Records that a segment lacks units of this track. Video, except the reference track, resumes at a key frame. */
  interrupt(): void {
    this.#decodable = false
  }

  /** Removes and returns the waiting units. */
  release(): PesUnit[] {
    const units = this.#units.map(({ unit }) => unit)
    this.#units = []
    this.#sizeBytes = 0
    return units
  }

  /** Drops the waiting units. */
  clear(): void {
    this.#dropped += this.release().length
    this.#decodable = false
  }

  get #isFull(): boolean {
    return this.#units.length > MAX_UNITS || this.#sizeBytes > this.#maxBytes
  }

  /** Whether the reference track has reached the unit, and the unit is on the current timeline. */
  #isDue({ ticks, unit }: QueuedUnit, { timelineStartTicks, untilTicks }: PlacingWindow): boolean {
    if (this.reference) return true
    // Metadata on an unrelated clock is placed on arrival.
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

  /** Whether the unit will never be due: it ended before the timeline began, or a later unit is due already. */
  #isStray({ ticks }: QueuedUnit, window: PlacingWindow): boolean {
    if (this.kind === 'data') return false
    const isBack = ticks < this.#oldestTicks(window.timelineStartTicks)
    if (isBack && this.#takenTicks === undefined) return true
    const next = this.#units[1]
    const isOutOfOrder = isBack || ticks > window.untilTicks
    return isOutOfOrder && next !== undefined && this.#isDue(next, window)
  }

  /** Whether the unit has reached its maximum wait, measured by the units queued after it. */
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
