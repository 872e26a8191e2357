/**
 * What the log says of the memory for segments: how much it holds, and what it costs where it is short.
 *
 * @module
 */
import { LISTED_SHARE } from '../hls/store/memory-share.ts'
import type { ShortageCounters } from '../hls/store/holding.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'

const MIB = 1024 * 1024
const LINE_INTERVAL_US = 60_000_000

/** What a window has at least (RFC 8216 6.2.2), and one more that is being added. */
const MIN_SEGMENTS = 3 + 1

/** A sentence about the bitrates that the memory suffices for. */
export function describeCapacity(
  maxMib: number,
  { segmentSec, playlistSegments }: { segmentSec: number; playlistSegments: number },
): string {
  const megabits = (maxMib * MIB * 8) / 1e6
  const full = (megabits * LISTED_SHARE) / (playlistSegments * segmentSec)
  const shortest = megabits / (MIN_SEGMENTS * segmentSec)
  return `cache of ${maxMib} MiB holds about ${Math.floor(full)} Mbit/s of streams with full playlists, ${Math.floor(shortest)} with the shortest`
}

/** `observe` now and then. */
export class CacheReport {
  readonly #cache: Pick<SegmentCache, 'stats'>
  #toldUs = -Infinity
  #told: ShortageCounters = { unlistedEarly: 0, releasedEarly: 0, refused: 0 }

  constructor(cache: Pick<SegmentCache, 'stats'>) {
    this.#cache = cache
  }

  /** @returns a sentence for the operator where memory was short since the one before: at most one a minute */
  observe(nowUs: number): string[] {
    const [told, { stats }] = [this.#told, this.#cache]
    const unlisted = stats.unlistedEarly - told.unlistedEarly
    const released = stats.releasedEarly - told.releasedEarly
    const gaps = stats.refused - told.refused
    if (unlisted + released + gaps === 0 || nowUs - this.#toldUs < LINE_INTERVAL_US) return []
    this.#toldUs = nowUs
    this.#told = stats
    const [hasMib, needsMib] = [stats.maxBytes, stats.neededBytes].map((it) => Math.ceil(it / MIB))
    return [
      `Memory for segments is short: ${hasMib} of ${needsMib} MiB. Viewers lack ${unlisted} unlisted early, ${released} released early, ${gaps} gaps. Set CACHE_MAX_MIB to ${needsMib}.`,
    ]
  }
}
