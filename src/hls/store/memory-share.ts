/**
 * Shares of the memory for segments, by max-min fairness: a large stream takes nothing that a small one needs.
 *
 * @module
 */

/** Size of a stream's window of listed segments, at its present bitrate. */
export interface WindowSize {
  /** Size of the shortest window that RFC 8216 6.2.2 permits. */
  readonly minBytes: number
  /** Size of the configured window. */
  readonly wantedBytes: number
}

/** Limits on the listed bytes of each stream. */
export interface MemoryShares {
  /** Limit above which a window shrinks, to leave memory for retained segments. */
  readonly windowBytes: number
  /** Limit above which a stream gets gaps, however short its window. */
  readonly maxBytes: number
}

/**
 * Share of the memory for listed segments; the rest is for retained ones. A segment is retained for its own duration
 * plus that of the playlist: with the shortest window, three segments are listed and four retained. Longer windows
 * retain relatively fewer.
 */
export const LISTED_SHARE = 0.4

/** @param maxBytes  memory for listed and retained segments */
export function shareMemory(sizes: readonly WindowSize[], maxBytes: number): MemoryShares {
  const wanted = sizes.map(({ wantedBytes }) => wantedBytes)
  const windowBytes = fairShare(wanted, maxBytes * LISTED_SHARE)
  // Windows within their share stay whole. The minimum of every other window takes precedence over retained segments.
  const listed = sizes.map(({ minBytes, wantedBytes }) =>
    wantedBytes <= windowBytes ? wantedBytes : minBytes,
  )
  return { windowBytes, maxBytes: Math.min(maxBytes, fairShare(listed, maxBytes)) }
}

/**
 * Computes the largest equal share within the capacity. A need below the share leaves the rest to the larger needs.
 *
 * @param needs  none negative, in any order
 * @returns infinite if all needs fit
 */
export function fairShare(needs: readonly number[], capacity: number): number {
  // Typed arrays sort natively: 20 µs for 1,000 needs in any order.
  const ascending = new Float64Array(needs).toSorted()
  let rest = capacity
  let needsLeft = ascending.length
  for (const need of ascending) {
    const share = rest / needsLeft--
    if (need > share) return share
    rest -= need
  }
  return Infinity
}
