/**
 * PES packets of one rendition that wait for their segment, in one queue for each track.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { CarriedTracks } from './carried-tracks.ts'
import { UnitQueue, type PlacingWindow } from './unit-queue.ts'

/** Maximum size of the queue of a track, by kind; a video queue may have the maximum size of a segment. */
const MAX_WAITING_BYTES: Readonly<Partial<Record<Track['kind'], number>>> = {
  audio: 1024 * 1024,
  data: 256 * 1024,
}

/** Iterates in the order of placement: lead track, data, then audio. */
export class TrackQueues implements Iterable<UnitQueue> {
  readonly #maxSegmentBytes: number
  /** Queues by PID. */
  #queues = new Map<number, UnitQueue>()
  /** Number of PES packets that former queues dropped, or that `skip` dropped. */
  readonly #dropped: Record<Track['kind'], number> = { video: 0, audio: 0, data: 0 }

  constructor(maxSegmentBytes: number) {
    this.#maxSegmentBytes = maxSegmentBytes
  }

  [Symbol.iterator](): Iterator<UnitQueue> {
    return this.#queues.values()
  }

  /** Size of the waiting PES packets. */
  get sizeBytes(): number {
    let sizeBytes = 0
    for (const queue of this) sizeBytes += queue.sizeBytes
    return sizeBytes
  }

  /** Whether audio is dropped because its timestamps are too far from those of the reference track. */
  get audioOutOfStep(): boolean {
    for (const queue of this) if (queue.kind === 'audio' && queue.outOfStep) return true
    return false
  }

  /** Number of PES packets dropped, by kind of track. */
  get droppedUnits(): Readonly<Record<Track['kind'], number>> {
    const dropped = { ...this.#dropped }
    for (const queue of this) dropped[queue.kind] += queue.dropped
    return dropped
  }

  /** @returns undefined for a track that is not carried */
  get(pid: number): UnitQueue | undefined {
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

  /**
   * Copies the newest PES packet of each queue if its chunks are views into the input, and drops the oldest of a full
   * queue.
   */
  keep(): void {
    for (const queue of this) queue.keep()
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
