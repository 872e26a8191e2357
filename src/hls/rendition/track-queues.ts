/**
 * PES packets of one rendition that wait for their segment, in one queue for each track.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { CarriedTracks } from './rendition-tracks.ts'
import { memoryOf, type PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import { MAX_SKEW_TICKS, MAX_STEP_BACK_TICKS, SNAP_TICKS } from '../cut/timeline.ts'

/** Maximum memory of the queue of a track, by kind; a video queue may have the maximum size of a segment. */
const MAX_WAITING_BYTES: Readonly<Partial<Record<Track['kind'], number>>> = {
  audio: 2 * 1024 * 1024,
  data: 512 * 1024,
}

/** Memory of the waiting PES packets of a stream. One that waits in two renditions counts twice, though they share it. */
export interface WaitingMemory {
  bytes: number
}

/** Iterates in the order of placement: lead track, data, then audio. */
export class TrackQueues implements Iterable<TrackQueue> {
  readonly #maxSegmentBytes: number
  readonly #memory: WaitingMemory
  /** Queues by PID. */
  #queues = new Map<number, TrackQueue>()
  /** Number of PES packets that former queues dropped, or that `skip` dropped. */
  readonly #dropped: Record<Track['kind'], number> = { video: 0, audio: 0, data: 0 }

  constructor(maxSegmentBytes: number, memory: WaitingMemory) {
    this.#maxSegmentBytes = maxSegmentBytes
    this.#memory = memory
  }

  [Symbol.iterator](): Iterator<TrackQueue> {
    return this.#queues.values()
  }

  get isEmpty(): boolean {
    for (const queue of this) if (!queue.isEmpty) return false
    return true
  }

  /** Whether audio is dropped because its timestamps are too far from those of the reference track. */
  get audioOutOfStep(): boolean {
    for (const queue of this) if (queue.kind === 'audio' && queue.outOfStep) return true
    return false
  }

  /** Number of PES packets dropped, by kind of track. */
  get droppedPackets(): Readonly<Record<Track['kind'], number>> {
    const dropped = { ...this.#dropped }
    for (const queue of this) dropped[queue.kind] += queue.dropped
    return dropped
  }

  /** @returns undefined for a track that is not carried */
  get(pid: number): TrackQueue | undefined {
    return this.#queues.get(pid)
  }

  /**
   * Sets the tracks to queue. A track retains its queue, unless it becomes or ceases to be the reference track.
   *
   * @param isReference  whether the lead track is the reference track
   */
  carry(carried: CarriedTracks | undefined, isReference: boolean): void {
    const before = this.#queues
    this.#queues = new Map()
    for (const [index, track] of placingOrder(carried).entries()) {
      const { pid, kind } = track
      const reference = isReference && index === 0
      const known = before.get(pid)
      if (known?.reference === reference) before.delete(pid)
      const maxBytes = MAX_WAITING_BYTES[kind] ?? this.#maxSegmentBytes
      const options = { kind, reference, maxBytes, memory: this.#memory }
      this.#queues.set(pid, known?.reference === reference ? known : new TrackQueue(options))
    }
    for (const queue of before.values()) {
      queue.clear()
      this.#dropped[queue.kind] += queue.dropped
    }
  }

  startTimeline(): void {
    for (const queue of this) queue.startTimeline()
  }

  /** Whether a PES packet after the window has arrived on each track, so that the window is complete. */
  isPast(window: PlacingWindow): boolean {
    for (const queue of this) if (!queue.isPast(window)) return false
    return true
  }

  /** Drops the PES packets of a window. */
  skip(window: PlacingWindow): void {
    for (const queue of this) {
      queue.interrupt()
      while (queue.take(window) !== undefined) this.#dropped[queue.kind]++
    }
  }

  /** Drops the waiting PES packets. */
  clear(): void {
    for (const queue of this) queue.clear()
  }
}

/** Tracks in the order of placement. */
function placingOrder(carried: CarriedTracks | undefined): Track[] {
  if (carried === undefined) return []
  const { video, audio, data = [] } = carried
  const tracks = video === undefined ? [audio, ...data] : [video, ...data, audio]
  return tracks.filter((track) => track !== undefined)
}

interface TrackQueueOptions {
  readonly kind: Track['kind']
  /** Whether this is the reference track, whose PES packets never wait. */
  readonly reference: boolean
  /** Maximum memory of the waiting PES packets. */
  readonly maxBytes: number
  /** Memory of all queues. */
  readonly memory: WaitingMemory
}

/** Range of times in which PES packets are placed now. */
export interface PlacingWindow {
  /** Start of the timeline. */
  readonly timelineStartTicks: number
  /** Time after which PES packets belong to another segment, or wait for the reference track. */
  readonly untilTicks: number
}

export interface QueuedPes {
  readonly unit: PesUnit
  /** Start time of a segment that begins with this PES packet, see `Timeline.timeOf`. */
  readonly ticks: number
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

const MAX_PACKETS = 8192

/** Number of consecutive PES packets dropped far from the reference track that make a track out of step. */
const FAR_IN_A_ROW = 50

/**
 * PES packets of one track. Each waits until the reference track is at its time, so that no segment starts without the
 * audio of its first frames. A late PES packet is placed at once: players trim it, and waiting would delay every segment.
 *
 * Calling order: `push` each PES packet, `take` until undefined, then `keep` a copy if it `isHolding` it still; `take` also
 * when the reference track has advanced. `startTimeline` when a timeline starts.
 */
export class TrackQueue {
  readonly kind: Track['kind']
  readonly reference: boolean
  readonly #maxBytes: number
  readonly #memory: WaitingMemory
  #waiting: QueuedPes[] = []
  #sizeBytes = 0
  #dropped = 0
  #farInARow = 0
  #reorderTicks = 0
  /** Time of the PES packet taken last in this timeline. */
  #takenTicks: number | undefined
  /** Whether a key frame was taken, and no PES packet dropped since; for video other than the reference track. */
  #decodable = false

  constructor({ kind, reference, maxBytes, memory }: TrackQueueOptions) {
    this.kind = kind
    this.reference = reference
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Number of PES packets dropped. */
  get dropped(): number {
    return this.#dropped
  }

  /** Whether the timestamps are too far from those of the reference track, so that the PES packets are dropped. */
  get outOfStep(): boolean {
    return this.#farInARow >= FAR_IN_A_ROW
  }

  /** Borrows the chunks of the PES packet until `keep`. */
  push(unit: PesUnit): void {
    const { randomAccess, ptsTicks, dtsTicks } = unit
    if (randomAccess) this.#reorderTicks = ptsTicks - dtsTicks
    this.#waiting.push({ unit, ticks: dtsTicks + this.#reorderTicks })
    this.#count(memoryOf(unit))
  }

  /** @returns next PES packet to place; undefined if none is due */
  take(window: PlacingWindow): QueuedPes | undefined {
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
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
    const newest = this.#waiting.at(-1)
    return newest !== undefined && !this.#isDue(newest, window)
  }

  /** Whether a PES packet is the newest one that waits. */
  isHolding(unit: PesUnit): boolean {
    return this.#waiting.at(-1)?.unit === unit
  }

  /** Puts a copy in the place of the newest PES packet; drops the oldest when full. */
  keep(copy: PesUnit): void {
    const last = this.#waiting.pop()
    if (last !== undefined) this.#waiting.push({ ...last, unit: copy })
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
    const released = this.#waiting.map(({ unit }) => unit)
    this.#waiting = []
    this.#count(-this.#sizeBytes)
    return released
  }

  /** Drops the waiting PES packets. */
  clear(): void {
    this.#dropped += this.release().length
    this.#decodable = false
  }

  get #isFull(): boolean {
    return this.#waiting.length > MAX_PACKETS || this.#sizeBytes > this.#maxBytes
  }

  /** Whether the PES packet is in the window: not ahead of the reference track, and on the current timeline. */
  #isDue({ ticks, unit }: QueuedPes, { timelineStartTicks, untilTicks }: PlacingWindow): boolean {
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
  #isStray({ ticks }: QueuedPes, window: PlacingWindow): boolean {
    if (this.kind === 'data') return false
    const isBack = ticks < this.#oldestTicks(window.timelineStartTicks)
    if (isBack && this.#takenTicks === undefined) return true
    const next = this.#waiting[1]
    const isOutOfOrder = isBack || ticks > window.untilTicks
    return isOutOfOrder && next !== undefined && this.#isDue(next, window)
  }

  /** Whether the PES packet has waited for its maximum time, measured to the newest one, or the queue is full. */
  #isOverdue({ ticks }: QueuedPes, { untilTicks }: PlacingWindow): boolean {
    const newest = this.#waiting.at(-1)!
    const maxTicks = ticks > untilTicks ? MAX_AHEAD_TICKS : MAX_BACK_TICKS
    return this.#isFull || Math.abs(newest.ticks - ticks) > maxTicks
  }

  #drop(): void {
    this.#shift()
    this.#dropped++
    this.#decodable = false
  }

  #shift(): void {
    const head = this.#waiting.shift()
    if (head !== undefined) this.#count(-memoryOf(head.unit))
  }

  #count(bytes: number): void {
    this.#sizeBytes += bytes
    this.#memory.bytes += bytes
  }
}
