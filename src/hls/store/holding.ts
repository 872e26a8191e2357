/**
 * Streams whose segments are in the cache, and what each has in it.
 *
 * @module
 */
import type { WindowSize } from './memory-share.ts'

/** Playlists in step whose segments are in the cache. */
export interface SegmentOwner {
  readonly windowSize: WindowSize
  /** Takes the oldest segment out of the window and retains it; false where the window cannot be shorter. */
  shrink(nowMs: number): boolean
  /** Lists a segment as a gap: it is no longer in the cache. */
  drop(uri: string): void
}

/** Segments that memory did not suffice for. Counters only go up. */
export interface ShortageCounters {
  /** Left their playlist early, because the window had to shrink. */
  readonly unlistedEarly: number
  /** Released before the time that RFC 8216 6.2.2 asks for. */
  readonly releasedEarly: number
  /** Not stored, or dropped while the stream had no encoder: the playlist lists a gap. */
  readonly refused: number
}

export type Counters = { -readonly [Name in keyof ShortageCounters]: number }

export const NO_SHORTAGE: ShortageCounters = { unlistedEarly: 0, releasedEarly: 0, refused: 0 }

export const NO_WINDOW: WindowSize = { minBytes: 0, wantedBytes: 0 }

/** Segments of one owner, by URI. */
export class Holding {
  readonly owner: SegmentOwner
  readonly listed = new Set<string>()
  /** Time at which each is released, in the order in which they left the window. */
  readonly retained = new Map<string, number>()
  readonly shortage: Counters = { ...NO_SHORTAGE }
  bytes = 0
  listedBytes = 0
  windowSize = NO_WINDOW
  /** The window cannot shrink until it grows. */
  shortest = false
  /** No segment is expected: all that it holds may go. */
  idle = false

  constructor(owner: SegmentOwner) {
    this.owner = owner
  }

  get retains(): boolean {
    return this.bytes > this.listedBytes
  }
}
