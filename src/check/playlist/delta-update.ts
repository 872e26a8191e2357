/**
 * Merge of a delta update into the playlist that a client has (RFC 8216bis 6.3.7).
 *
 * @module
 */
import type { MediaPlaylist } from './media-playlist.ts'

/** @returns the full playlist; undefined if the known one lacks a skipped segment */
export function mergeDelta(known: MediaPlaylist, delta: MediaPlaylist): MediaPlaylist | undefined {
  if (delta.skipped === 0) return delta
  const last = delta.mediaSequence + delta.skipped - 1
  const skipped = known.segments.filter(
    ({ sequence, uri }) => sequence >= delta.mediaSequence && sequence <= last && uri !== undefined,
  )
  if (skipped.length !== delta.skipped) return undefined
  const discontinuities = skipped.filter(({ discontinuity }) => discontinuity).length
  return {
    ...delta,
    skipped: 0,
    segments: [
      ...skipped.map((segment) => ({ ...segment, parts: [] })),
      ...delta.segments.map((segment) => ({
        ...segment,
        discontinuitySequence: segment.discontinuitySequence + discontinuities,
      })),
    ],
  }
}
