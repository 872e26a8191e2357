/**
 * Queues of the tracks of one rendition, whose units wait for their segment.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { CarriedTracks } from './carried-tracks.ts'
import { UnitQueue, type PlacingWindow } from './unit-queue.ts'

/** Maximum size of a track's queue; for video it is the maximum size of a segment. */
const MAX_WAITING_BYTES: Readonly<Partial<Record<Track['kind'], number>>> = {
  audio: 1024 * 1024,
  data: 256 * 1024,
}

export interface TrackQueuesOptions {
  /** Whether the lead track is the reference track. */
  readonly reference: boolean
  readonly maxSegmentBytes: number
}

/** Iterates in the order of placement: lead track, data, then audio. */
export class TrackQueues implements Iterable<UnitQueue> {
  readonly #options: TrackQueuesOptions
  /** Queues by PID. */
  #queues = new Map<number, UnitQueue>()
  /** Units dropped from former queues, and units of segments without their lead track. */
  readonly #dropped: Record<Track['kind'], number> = { video: 0, audio: 0, data: 0 }

  constructor(options: TrackQueuesOptions) {
    this.#options = options
  }

  [Symbol.iterator](): Iterator<UnitQueue> {
    return this.#queues.values()
  }

  /** Size of the waiting units. */
  get sizeBytes(): number {
    let sizeBytes = 0
    for (const queue of this) sizeBytes += queue.sizeBytes
    return sizeBytes
  }

  /** Whether the audio is on another clock than the reference track. */
  get audioOutOfStep(): boolean {
    for (const queue of this) if (queue.kind === 'audio' && queue.outOfStep) return true
    return false
  }

  /** Units that reached no segment, by kind of track. */
  get droppedUnits(): Readonly<Record<Track['kind'], number>> {
    const dropped = { ...this.#dropped }
    for (const queue of this) dropped[queue.kind] += queue.dropped
    return dropped
  }

  /** @returns undefined for a track that is not carried */
  get(pid: number): UnitQueue | undefined {
    return this.#queues.get(pid)
  }

  /** Replaces the queues by those of other tracks; a track that stays keeps its queue. */
  carry(carried: CarriedTracks | undefined): void {
    const before = this.#queues
    this.#queues = new Map()
    for (const [index, track] of placingOrder(carried).entries()) {
      const { pid, kind } = track
      const reference = this.#options.reference && index === 0
      const known = before.get(pid)
      if (known?.reference === reference) before.delete(pid)
      const maxBytes = MAX_WAITING_BYTES[kind] ?? this.#options.maxSegmentBytes
      const queue =
        known?.reference === reference ? known : new UnitQueue({ kind, reference, maxBytes })
      this.#queues.set(pid, queue)
    }
    for (const queue of before.values()) {
      queue.clear()
      this.#dropped[queue.kind] += queue.dropped
    }
  }

  startTimeline(): void {
    for (const queue of this) queue.startTimeline()
  }

  /** Whether a unit after the window has arrived on each track, so that the window is complete. */
  isPast(window: PlacingWindow): boolean {
    for (const queue of this) if (!queue.isPast(window)) return false
    return true
  }

  /** Drops the units of a window. */
  skip(window: PlacingWindow): void {
    for (const queue of this) {
      queue.interrupt()
      while (queue.take(window) !== undefined) this.#dropped[queue.kind]++
    }
  }

  /** Copies the waiting units, whose chunks are views into the input. */
  keep(): void {
    for (const queue of this) queue.keep()
  }

  /** Drops the waiting units. */
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
