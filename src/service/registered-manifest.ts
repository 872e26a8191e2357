/**
 * Manifest of a stream as the registry of the cluster has it: the head beside the entries, one for each row.
 *
 * @module
 */
import type { ManifestWrite } from '../cluster/owner-writes.ts'
import type { Continuation, WindowEntry } from '../cluster/registry/records.ts'
import { decodeSettings } from '../cluster/stream-settings.ts'
import {
  parseManifest,
  type ManifestHead,
  type ManifestRow,
  type StreamManifest,
} from '../hls/manifest.ts'
import { streamMedia, type MediaSettings } from './stream-options.ts'

/**
 * Characters of date ranges in the registry. Their commands may have 4 KiB each, and all of them are written again whenever
 * the head changes.
 */
const MAX_DATE_RANGES_CHARACTERS = 16_384

/** Head and rows for the registry; `first` is the number of the first row. */
export function encodeManifest({ rows, ...head }: StreamManifest): ManifestWrite {
  const first = rows[0]?.mediaSequence ?? head.free.media
  return { first, ...encodeHead(head), entries: encodeRows(rows) }
}

/** Of the date ranges, the newest that fit. */
export function encodeHead({
  free,
  targets,
  dateRanges,
  ...head
}: ManifestHead): Pick<ManifestWrite, 'free' | 'targets' | 'renditions'> {
  const renditions = { ...head, dateRanges: newest(dateRanges) }
  return { free, ...(targets !== undefined && { targets }), renditions }
}

function newest(dateRanges: ManifestHead['dateRanges']): ManifestHead['dateRanges'] {
  let characters = 0
  const tooOld = dateRanges.findLastIndex((dateRange) => {
    characters += JSON.stringify(dateRange).length
    return characters > MAX_DATE_RANGES_CHARACTERS
  })
  return dateRanges.slice(tooOld + 1)
}

export function encodeRows(rows: readonly ManifestRow[]): WindowEntry[] {
  return rows.map((value) => ({ mediaSequence: value.mediaSequence, value }))
}

/** @returns a manifest without rows if the registry has none of this form: numbers go on */
export function manifestOf(
  { stream, free, targets, renditions, entries }: Continuation,
  settings: MediaSettings,
): StreamManifest {
  const { media } = decodeSettings(stream.settings)
  const { formats, partSec, ...durations } = streamMedia(settings, media)
  const fresh: StreamManifest = {
    media: { formats: [...formats], ...durations, ...(partSec !== undefined && { partSec }) },
    free,
    listedFrom: 0,
    renditions: [],
    dateRanges: [],
    rows: [],
  }
  if (renditions === undefined) return fresh
  // Heads of earlier versions have no `listedFrom`: all of their rows are listed.
  const head = {
    listedFrom: 0,
    ...(renditions as object),
    ...(targets !== undefined && { targets }),
    free,
  }
  return parseManifest({ ...head, rows: entries.map(({ value }) => value) }) ?? fresh
}
