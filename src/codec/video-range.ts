/**
 * Dynamic range of video by its transfer characteristics (ITU-T H.273 Table 3; RFC 8216bis 4.4.6.2).
 *
 * @module
 */

/** Value of VIDEO-RANGE. */
export type VideoRange = 'SDR' | 'HLG' | 'PQ'

/** Ranges by precedence: video of several ranges counts as the last of them (RFC 8216bis 4.4.6.2). */
const BY_PRECEDENCE: readonly VideoRange[] = ['SDR', 'HLG', 'PQ']

const RANGES: Readonly<Record<number, VideoRange>> = { 16: 'PQ', 18: 'HLG' }

/** @param transfer  code point, from the parameter sets or an SEI message; an unknown or absent code point is SDR */
export function videoRangeOf(transfer: number | undefined): VideoRange {
  return RANGES[transfer ?? 0] ?? 'SDR'
}

/** @returns VIDEO-RANGE of video that mixes these ranges; undefined if it has none */
export function mixVideoRanges(
  ranges: readonly (VideoRange | undefined)[],
): VideoRange | undefined {
  return BY_PRECEDENCE.findLast((range) => ranges.includes(range))
}
