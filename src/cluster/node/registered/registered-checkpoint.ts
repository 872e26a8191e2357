/**
 * Checkpoint of a stream as the registry of the cluster has it: the head beside the entries, one for each row.
 *
 * @module
 */
import type { Handover, WindowEntry } from '../../registry/registered.ts'
import type { Advance } from '../../registry/registry.ts'
import { decodeOptions } from '../../registry/registered-options.ts'
import {
  parseCheckpoint,
  type CheckpointHead,
  type CheckpointRow,
  type StreamCheckpoint,
} from '../../../hls/playlist/checkpoint.ts'
import { mediaOptionsOf } from '../../../hls/media-options.ts'
import { streamMedia, type MediaSettings } from '../../../service/stream-defaults.ts'

/** Checkpoint, or what has changed of it, for a call of the registry. */
export type CheckpointWrite = Pick<Advance, 'first' | 'free' | 'targets' | 'renditions' | 'entries'>

/**
 * Characters of date ranges in the registry. Their commands may have 4 KiB each, and all of them are written again whenever
 * the head changes.
 */
const MAX_DATE_RANGES_CHARACTERS = 16_384

/** Head and rows for the registry; `first` is the number of the first row. */
export function encodeCheckpoint({ rows, ...head }: StreamCheckpoint): CheckpointWrite {
  const first = rows[0]?.mediaSequence ?? head.free.media
  return { first, ...encodeHead(head), entries: encodeRows(rows) }
}

/** Head for the registry, with the newest date ranges that fit. */
export function encodeHead({
  free,
  targets,
  dateRanges,
  ...head
}: CheckpointHead): Pick<CheckpointWrite, 'free' | 'targets' | 'renditions'> {
  const renditions = { ...head, dateRanges: newest(dateRanges) }
  return { free, ...(targets !== undefined && { targets }), renditions }
}

function newest(dateRanges: CheckpointHead['dateRanges']): CheckpointHead['dateRanges'] {
  let characters = 0
  const tooOld = dateRanges.findLastIndex((dateRange) => {
    characters += JSON.stringify(dateRange).length
    return characters > MAX_DATE_RANGES_CHARACTERS
  })
  return dateRanges.slice(tooOld + 1)
}

export function encodeRows(rows: readonly CheckpointRow[]): WindowEntry[] {
  return rows.map((value) => ({ mediaSequence: value.mediaSequence, value }))
}

/** @returns a checkpoint without rows if the registry has none of this form: numbers go on */
export function checkpointOf(
  { stream, free, targets, renditions, entries }: Handover,
  settings: MediaSettings,
): StreamCheckpoint {
  const { media } = decodeOptions(stream.options)
  const fresh: StreamCheckpoint = {
    media: mediaOptionsOf(streamMedia(settings, media)),
    free,
    listedFrom: 0,
    renditions: [],
    dateRanges: [],
    rows: [],
  }
  if (renditions === undefined) return fresh
  const written = renditions as Partial<CheckpointHead>
  // Heads of earlier versions lack what was added since, such as `listedFrom`: all of their rows are listed.
  const head = {
    listedFrom: 0,
    ...written,
    media: { ...fresh.media, ...written.media },
    ...(targets !== undefined && { targets }),
    free,
  }
  return parseCheckpoint({ ...head, rows: entries.map(({ value }) => value) }) ?? fresh
}
