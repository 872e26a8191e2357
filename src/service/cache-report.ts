/**
 * Log lines about the memory for segments: its capacity at the start, and what viewers lose when memory is short.
 *
 * @module
 */
import { IntervalLimiter } from '../timing/interval-limiter.ts'
import { LISTED_SHARE } from '../hls/store/memory-share.ts'
import { NO_SHORTAGE, type ShortageCounters } from '../hls/store/cache-account.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { MediaSettings } from './stream-defaults.ts'

const MIB = 1024 * 1024
const LINE_INTERVAL_US = 60_000_000

/** Number of segments in the shortest playlist (RFC 8216 6.2.2), plus the one being added. */
const MIN_SEGMENTS = 3 + 1

/**
 * @returns a sentence with the total bitrate of encoders whose media fits into the memory in all formats, with full and with
 *   the shortest playlists
 */
export function describeCapacity(
  maxMib: number,
  media: Pick<MediaSettings, 'formats' | 'segmentSec' | 'playlistSegments'>,
): string {
  const { formats, segmentSec, playlistSegments } = media
  const megabits = (maxMib * MIB * 8) / 1e6 / formats.length
  const full = (megabits * LISTED_SHARE) / (playlistSegments * segmentSec)
  const shortest = megabits / (MIN_SEGMENTS * segmentSec)
  return `CACHE_MAX_MIB is ${maxMib}: enough for encoders of ${Math.floor(full)} Mbit/s in all. Above that, playlists get shorter; above ${Math.floor(shortest)} Mbit/s, viewers lose segments.`
}

/** Inputs: `observe` at least once a second. */
export class CacheReport {
  readonly #cache: Pick<SegmentCache, 'stats'>
  readonly #limiter = new IntervalLimiter(LINE_INTERVAL_US)
  #reported: ShortageCounters = NO_SHORTAGE

  constructor(cache: Pick<SegmentCache, 'stats'>) {
    this.#cache = cache
  }

  /** @returns a warning if memory was short since the last warning, at most one a minute */
  observe(nowUs: number): string[] {
    const { stats } = this.#cache
    const reported = this.#reported
    const unlisted = stats.unlistedEarly - reported.unlistedEarly
    const released = stats.releasedEarly - reported.releasedEarly
    const gaps = stats.refused - reported.refused
    if (unlisted + released + gaps === 0 || !this.#limiter.take('shortage', nowUs)) return []
    this.#reported = stats
    const [hasMib, queuedMib, adviceMib] = [
      stats.maxBytes,
      stats.queuedBytes,
      stats.advisedBytes,
    ].map((it) => Math.ceil(it / MIB))
    return [
      `Memory is short: ${unlisted} segments unlisted, ${released} released early, ${gaps} gaps. Viewers see less. Set CACHE_MAX_MIB to ${adviceMib} (now ${hasMib}, ${queuedMib} in queues).`,
    ]
  }
}
