/**
 * Segments of an earlier process in a window, and in the cache as far as their media is at hand.
 *
 * @module
 */
import type { FileStore } from '../store/file-store.ts'
import { createStreamFile } from '../store/stream-file.ts'
import type { ListedSegment, PlaylistWindow } from './playlist-window.ts'
import type { MeterState } from './rendition-meter.ts'

/** Returns the media of a segment by its URI; undefined if it is not at hand. The cache owns it from then on. */
export type MediaSource = (uri: string) => readonly Buffer[] | undefined

export interface EarlierSegments {
  /** Segments as gaps, oldest first; `dropped` if they had media. */
  readonly entries: readonly ListedSegment[]
  readonly meter: MeterState | undefined
  readonly mediaOf: MediaSource
  readonly targetSec: number
}

/** @returns the newest segment with media */
export function listEarlier(
  { entries, mediaOf, targetSec: targetDurationSec }: EarlierSegments,
  window: PlaylistWindow,
  files: FileStore,
  nowMs: number,
): ListedSegment | undefined {
  let newest: ListedSegment | undefined
  for (const entry of entries) {
    const { uri } = entry.segment
    window.push(entry)
    const chunks = entry.dropped ? mediaOf(uri) : undefined
    if (chunks === undefined) continue
    const file = createStreamFile('segment', { chunks, version: uri, targetDurationSec })
    if (!files.put(uri, file, nowMs)) continue
    entry.dropped = false
    window.addMedia(entry)
    newest = entry
  }
  window.recordDuration()
  return newest
}
