/**
 * Manifest of a stream as the registry of the cluster has it: the head beside the entries, one for each row.
 *
 * @module
 */
import type { Continuation, WindowEntry } from '../cluster/registry/records.ts'
import { decodeSettings } from '../cluster/stream-settings.ts'
import { parseManifest, type ManifestRow, type StreamManifest } from '../hls/manifest.ts'
import type { MediaOptions } from '../hls/media-options.ts'
import { mediaOptionsOf } from './registered-terms.ts'

/** Head and rows for the registry; `first` is the number of the first row. */
export function encodeManifest({ targets, free, rows, ...renditions }: StreamManifest): {
  readonly first: number
  readonly free: StreamManifest['free']
  readonly targets?: StreamManifest['targets']
  readonly renditions: unknown
  readonly entries: readonly WindowEntry[]
} {
  return {
    first: rows[0]?.mediaSequence ?? free.media,
    free,
    ...(targets !== undefined && { targets }),
    renditions,
    entries: encodeRows(rows),
  }
}

export function encodeRows(rows: readonly ManifestRow[]): WindowEntry[] {
  return rows.map((value) => ({ mediaSequence: value.mediaSequence, value }))
}

/**
 * @param settings  options for the media of all streams
 * @returns a manifest without rows if the registry has none of this form: numbers go on
 */
export function manifestOf(
  { stream, free, targets, renditions, entries }: Continuation,
  settings: MediaOptions,
): StreamManifest {
  const { segmentSec, playlistSegments, partSec } = {
    ...settings,
    ...mediaOptionsOf(decodeSettings(stream.settings)),
  }
  const fresh: StreamManifest = {
    media: { segmentSec, playlistSegments, ...(partSec !== undefined && { partSec }) },
    free,
    renditions: [],
    dateRanges: [],
    rows: [],
  }
  if (renditions === undefined) return fresh
  const head = { ...(renditions as object), ...(targets !== undefined && { targets }), free }
  return parseManifest({ ...head, rows: entries.map(({ value }) => value) }) ?? fresh
}
