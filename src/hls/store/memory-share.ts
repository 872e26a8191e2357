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

/** Needs of a stream. */
interface MemoryNeed {
  readonly windowSize: WindowSize
  /** Size of media that is in no segment yet. */
  readonly queuedBytes: number
}

/** Shares of the memory: limits on the listed and queued bytes of each stream, and the size of all queues. */
export interface MemoryShares {
  /** Limit above which a window shrinks, to leave memory for retained segments. */
  readonly windowBytes: number
  /** Limit above which a stream gets gaps, however short its window. */
  readonly maxBytes: number
  /** Sum of the queues, each counted up to `maxBytes`: no queue takes memory from another stream's share. */
  readonly queuedBytes: number
}

/**
 * Share of the memory for listed segments; the rest is for retained segments. A segment is retained for its own
 * duration plus the duration of the playlist: with the shortest window, three segments are listed and four are
 * retained. Longer windows retain relatively fewer.
 */
export const LISTED_SHARE = 0.4

/** @param maxBytes  memory for queues, and for listed and retained segments */
export function shareMemory(needs: readonly MemoryNeed[], maxBytes: number): MemoryShares {
  const queues = needs.map(({ queuedBytes }) => queuedBytes)
  const wanted = needs.map((need) => need.windowSize.wantedBytes + need.queuedBytes)
  const windowBytes = fairShare(wanted, listedCapacity(sum(queues), maxBytes))
  // Windows within their share stay whole. The minimum of every other window takes precedence over retained segments.
  const listed = needs.map(({ windowSize, queuedBytes }, index) =>
    wanted[index]! <= windowBytes ? wanted[index]! : windowSize.minBytes + queuedBytes,
  )
  const shareBytes = Math.min(maxBytes, fairShare(listed, maxBytes))
  const queuedBytes = sum(queues.map((bytes) => Math.min(bytes, shareBytes)))
  return { windowBytes, maxBytes: shareBytes, queuedBytes }
}

/** @returns capacity for queues and listed segments: the queues, and `LISTED_SHARE` of the rest of the memory */
export function listedCapacity(queuedBytes: number, maxBytes: number): number {
  const taken = Math.min(queuedBytes, maxBytes)
  return taken + (maxBytes - taken) * LISTED_SHARE
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/**
 * Computes the largest equal share within the capacity. A need below the share leaves the rest to the larger needs.
 *
 * @param needs  none negative, in any order
 * @returns the share; Infinity if all needs fit
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
