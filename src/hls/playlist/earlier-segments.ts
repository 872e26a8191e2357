/**
 * Segments of an earlier process in a window, or retained, and in the cache as far as their media is at hand.
 *
 * @module
 */
import type { RenditionName } from '../file-names.ts'
import type { FileStore } from '../store/file-store.ts'
import type { InitSegment } from '../store/segment.ts'
import { createStreamFile } from '../store/stream-file.ts'
import type { ListedSegment, PlaylistWindow, RetainedSegments } from './playlist-window.ts'
import type { MeterState } from './rendition-meter.ts'

/** Returns the media of a segment, or an init segment, by its URI; undefined if it is not at hand. The cache owns it from then on. */
export type MediaSource = (uri: string) => readonly Buffer[] | undefined

export interface EarlierSegments {
  readonly rendition: RenditionName
  /** Segments as gaps, oldest first; `dropped` if they had media. */
  readonly entries: readonly ListedSegment[]
  /** Lowest number that was listed; lower ones are retained. */
  readonly listedFrom: number
  readonly meter: MeterState | undefined
  readonly mediaOf: MediaSource
  readonly targetSec: number
}

interface ListedIn {
  /** Called with each init segment, before the segments that need it. */
  readonly onInit: (init: InitSegment) => void
  readonly window: PlaylistWindow
  readonly retained: RetainedSegments
  readonly files: FileStore
}

/** @returns the newest listed segment with media */
export function listEarlier(
  { rendition, entries, listedFrom, mediaOf, targetSec: targetDurationSec }: EarlierSegments,
  { window, retained, files, onInit }: ListedIn,
  nowMs: number,
): ListedSegment | undefined {
  let newest: ListedSegment | undefined
  const putMedia = (entry: ListedSegment): boolean => {
    const { uri } = entry.segment
    const chunks = entry.dropped ? mediaOf(uri) : undefined
    if (chunks === undefined) return false
    if (entry.map !== undefined) {
      const init = mediaOf(entry.map)
      if (init === undefined) return false
      onInit({ uri: entry.map, bytes: Buffer.concat(init) })
    }
    const file = createStreamFile('segment', {
      rendition,
      chunks,
      version: uri,
      targetDurationSec,
    })
    if (!files.put(uri, file, nowMs)) return false
    entry.dropped = false
    window.addMedia(entry)
    return true
  }
  const listed = entries.filter(({ mediaSequence }) => mediaSequence >= listedFrom)
  const left = entries.slice(0, entries.length - listed.length)
  for (const entry of listed) window.push(entry)
  // Audio lists a segment more where its frames end before those of the main rendition.
  while (left.length > 0 && window.unshift(left.at(-1)!, targetDurationSec))
    listed.unshift(left.pop()!)
  for (const entry of listed) if (putMedia(entry)) newest = entry
  window.recordDuration()
  // Later: what is retained must not take the memory of what is listed.
  for (const entry of left) {
    putMedia(entry)
    entry.longestPlaylistSec = window.durationSec
    retained.add(entry, nowMs)
  }
  return newest
}
