/**
 * Queue of the PES packets of one track of a rendition. A PES packet waits until the reference track is at its time, so
 * that no segment starts without the audio of its first frames. A late PES packet is placed at once: players trim it,
 * and waiting would delay every segment.
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
  /** Whether this is the reference track, whose PES packets never wait. */
  readonly reference: boolean
  /** Maximum size of the waiting PES packets. */
  readonly maxBytes: number
}

/** Range of times in which PES packets are placed now. */
export interface PlacingWindow {
  /** Start of the timeline. */
  readonly timelineStartTicks: number
  /** Time after which PES packets belong to another segment, or wait for the reference track. */
  readonly untilTicks: number
}

export interface QueuedUnit {
  readonly unit: PesUnit
  /** Start time of a segment that begins with this PES packet, see `Timeline.timeOf`. */
  readonly ticks: number
  /** Copy of its transport packets; undefined while its chunks are views into the input. */
  readonly packets?: Buffer
}

/** Maximum time by which a PES packet precedes its timeline; for audio, the usual duration of a PES packet. */
const LEAD_TICKS: Readonly<Record<Track['kind'], number>> = {
  video: SNAP_TICKS,
  audio: 0.25 * TICKS_PER_SEC,
  data: Infinity,
}

/** Longest wait of a PES packet ahead of the reference track, measured in media of its own track. */
const MAX_AHEAD_TICKS = 20 * TICKS_PER_SEC

/** Longest wait of a PES packet after a step back, in media of its own track: the reference track may step back too. */
const MAX_BACK_TICKS = 5 * TICKS_PER_SEC

const MAX_UNITS = 8192

/** Number of consecutive PES packets dropped far from the reference track that make a track out of step. */
const FAR_UNITS_IN_A_ROW = 50

/**
 * Calling order: `push` each PES packet, `take` until undefined, then `keep`; `take` also when the reference track has
 * advanced. `startTimeline` when a timeline starts.
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
  /** Time of the PES packet taken last in this timeline. */
  #takenTicks: number | undefined
  /** Whether a key frame was taken, and no PES packet dropped since; for video other than the reference track. */
  #decodable = false

  constructor({ kind, reference, maxBytes }: UnitQueueOptions) {
    this.kind = kind
    this.reference = reference
    this.#maxBytes = maxBytes
  }

  /** Size of the waiting PES packets. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Number of PES packets dropped. */
  get dropped(): number {
    return this.#dropped
  }

  /** Whether the timestamps are too far from those of the reference track, so that the PES packets are dropped. */
  get outOfStep(): boolean {
    return this.#farInARow >= FAR_UNITS_IN_A_ROW
  }

  /** Borrows the chunks of the PES packet until `keep`. */
  push(unit: PesUnit): void {
    const { randomAccess, ptsTicks, dtsTicks } = unit
    if (randomAccess) this.#reorderTicks = ptsTicks - dtsTicks
    this.#units.push({ unit, ticks: dtsTicks + this.#reorderTicks })
    this.#sizeBytes += unit.sizeBytes
  }

  /** @returns next PES packet to place; undefined if none is due */
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

  /** Whether a PES packet after the window has arrived, so that the window is complete. */
  isPast(window: PlacingWindow): boolean {
    const newest = this.#units.at(-1)
    return newest !== undefined && !this.#isDue(newest, window)
  }

  /** Copies the newest PES packet, if its chunks are still views into the input; drops the oldest when full. */
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

  /** Records that a segment lacks PES packets of this track: video other than the reference resumes at a key frame. */
  interrupt(): void {
    this.#decodable = false
  }

  /** Removes and returns the waiting PES packets. */
  release(): PesUnit[] {
    const units = this.#units.map(({ unit }) => unit)
    this.#units = []
    this.#sizeBytes = 0
    return units
  }

  /** Drops the waiting PES packets. */
  clear(): void {
    this.#dropped += this.release().length
    this.#decodable = false
  }

  get #isFull(): boolean {
    return this.#units.length > MAX_UNITS || this.#sizeBytes > this.#maxBytes
  }

  /** Whether the PES packet is in the window: not ahead of the reference track, and on the current timeline. */
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

  /** Whether the PES packet will never be due: it precedes the timeline, or the next in the queue is due already. */
  #isStray({ ticks }: QueuedUnit, window: PlacingWindow): boolean {
    if (this.kind === 'data') return false
    const isBack = ticks < this.#oldestTicks(window.timelineStartTicks)
    if (isBack && this.#takenTicks === undefined) return true
    const next = this.#units[1]
    const isOutOfOrder = isBack || ticks > window.untilTicks
    return isOutOfOrder && next !== undefined && this.#isDue(next, window)
  }

  /** Whether the PES packet has waited for its maximum time, measured to the newest one, or the queue is full. */
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
