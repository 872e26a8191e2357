/**
 * Owners of cached segments, and the segments of each owner.
 *
 * @module
 */
import type { WindowSize } from './memory-share.ts'
import type { StreamFile } from './stream-file.ts'

/** Owner of cached segments: all playlists of a stream, whose windows shrink together. */
export interface SegmentOwner {
  readonly windowSize: WindowSize
  /**
   * Removes the oldest segment from the window and retains it.
   *
   * @returns false if no segment may leave: the window has its minimum duration, or is not published yet
   */
  shrink(nowMs: number): boolean
  /** Turns a listed segment into a gap, since the cache releases it. */
  drop(uri: string): void
}

export interface CachedSegment {
  readonly owner: SegmentOwner
  readonly file: StreamFile
  /** Size of its media and of the objects of its parts. */
  readonly sizeBytes: number
}

/** Counters of segments lost to a shortage of memory; they only increase. */
export interface ShortageCounters {
  /** Segments removed from their playlist early, because the window had to shrink. */
  readonly unlistedEarly: number
  /** Segments released earlier than RFC 8216 6.2.2 allows. */
  readonly releasedEarly: number
  /** Segments that the cache did not store, so that they became gaps. */
  readonly refused: number
  /** Segments of an idle stream that were released for other streams; listed segments became gaps. */
  readonly yielded: number
}

export type Counters = { -readonly [Name in keyof ShortageCounters]: number }

export const NO_SHORTAGE: ShortageCounters = {
  unlistedEarly: 0,
  releasedEarly: 0,
  refused: 0,
  yielded: 0,
}

export const NO_WINDOW: WindowSize = { minBytes: 0, wantedBytes: 0 }

/** Segments of one owner, by URI. */
export class CacheAccount {
  readonly owner: SegmentOwner
  readonly listed = new Set<string>()
  /** Release time in milliseconds by URI, in the order in which the segments left the window. */
  readonly retained = new Map<string, number>()
  readonly shortage: Counters = { ...NO_SHORTAGE }
  bytes = 0
  listedBytes = 0
  /** Size of media that is in no segment yet. */
  queuedBytes = 0
  windowSize = NO_WINDOW
  /** Whether the window was shrunk as far as possible since the latest `put`. */
  shortest = false
  /** Whether the stream gets no media, so that all of its segments may be dropped. */
  idle = false

  constructor(owner: SegmentOwner) {
    this.owner = owner
  }

  get totalBytes(): number {
    return this.bytes + this.queuedBytes
  }

  /** Size of the configured window and the queues. */
  get wantedBytes(): number {
    return this.windowSize.wantedBytes + this.queuedBytes
  }

  get retains(): boolean {
    return this.bytes > this.listedBytes
  }
}

/** Whether `a` loses a segment before `b`: an idle owner before a live one, then the larger before the smaller. */
export function givesBefore(a: CacheAccount, b: CacheAccount): boolean {
  return a.idle === b.idle ? a.totalBytes > b.totalBytes : a.idle
}
