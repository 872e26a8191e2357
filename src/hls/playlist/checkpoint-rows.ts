/**
 * Parts of a checkpoint from the playlists, and back: rows from the windows, measurements and date ranges as plain JSON.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { DateRange } from '../date-range.ts'
import type { RenditionName } from '../file-names.ts'
import type {
  CheckpointDateRange,
  CheckpointRow,
  CheckpointSegment,
  CheckpointTrack,
  RenditionMeasurements,
  StreamCheckpoint,
} from './checkpoint.ts'
import type { SegmentStart } from '../store/segment.ts'
import type { TargetDurations } from '../target-durations.ts'
import type { ListedSegment } from './playlist-window.ts'
import type { MeterState } from './rendition-meter.ts'

/** Decimals of EXTINF, like the dates in whole milliseconds: a row has what the playlist prints. */
const DURATION_DECIMALS = 5

/** Minimum EXTINF of a segment that was never complete. */
const MIN_GAP_SEC = 0.01

/** Excess of EXTINF over EXT-X-TARGETDURATION that rounding to the nearest second permits. */
const MAX_EXCESS_SEC = 0.49

/** Segments of one number. */
interface RowSource {
  /** Undefined for a segment whose beginning is not known, or that is complete in all renditions. */
  readonly start: SegmentStart | undefined
  /** Renditions that list the segment, the main one first. */
  readonly listed: ReadonlyMap<RenditionName, ListedSegment>
  /** Dates of the segment in renditions that do not list it yet, as far as they are known. */
  readonly dates: ReadonlyMap<RenditionName, number>
}

/** @returns undefined if no rendition has the segment */
export function createRow({ start, listed, dates }: RowSource): CheckpointRow | undefined {
  const [complete] = listed.values()
  const known = complete === undefined ? start : describe(complete)
  if (known === undefined) return undefined
  const { mediaSequence, discontinuitySequence, discontinuity } = known
  const row = {
    mediaSequence,
    discontinuitySequence,
    discontinuity,
    programDateTimeMs: Math.floor(known.programDateTimeMs),
    ...(complete !== undefined && { durationSec: printedSec(complete.segment.durationSec) }),
  }
  const names = new Set([...(start?.uris.keys() ?? []), ...listed.keys()])
  const segments = [...names].map((rendition) => {
    const entry = listed.get(rendition)
    if (entry !== undefined) return createSegment(rendition, entry, row)
    const uri = start!.uris.get(rendition)!
    const dateMs = dates.get(rendition) ?? row.programDateTimeMs
    const gap = { rendition, uri, sizeBytes: 0, independent: false, gap: true }
    return { ...gap, ...dateBeside(row, dateMs) }
  })
  return { ...row, segments }
}

function describe({ mediaSequence, discontinuitySequence, segment }: ListedSegment) {
  const { discontinuity, programDateTimeMs } = segment
  return {
    mediaSequence,
    discontinuitySequence: discontinuitySequence + (discontinuity ? 1 : 0),
    discontinuity,
    programDateTimeMs,
  }
}

function createSegment(
  rendition: RenditionName,
  { segment, sizeBytes, independent, videoRange, map }: ListedSegment,
  row: Pick<CheckpointRow, 'programDateTimeMs' | 'durationSec'>,
): CheckpointSegment {
  const { uri, gap } = segment
  const durationSec = printedSec(segment.durationSec)
  return {
    rendition,
    uri,
    sizeBytes,
    independent,
    gap,
    ...(videoRange && { videoRange }),
    ...(map !== undefined && { map }),
    ...dateBeside(row, segment.programDateTimeMs),
    ...(durationSec !== row.durationSec && { durationSec }),
  }
}

/** @returns the date as it is printed, if it is not that of the row */
function dateBeside(
  row: Pick<CheckpointRow, 'programDateTimeMs'>,
  dateMs: number,
): Pick<CheckpointSegment, 'programDateTimeMs'> {
  const programDateTimeMs = Math.floor(dateMs)
  return programDateTimeMs === row.programDateTimeMs ? {} : { programDateTimeMs }
}

/** Row with a duration. */
export type ClosedRow = CheckpointRow & { readonly durationSec: number }

/**
 * Closes the rows of segments that were never complete: they are gaps until the next one or, at the end, until now.
 *
 * @param wallMs  milliseconds since 1970
 */
export function closeRows(
  { rows }: StreamCheckpoint,
  { targetSec }: TargetDurations,
  wallMs: number,
): ClosedRow[] {
  const closed: ClosedRow[] = []
  for (const [index, row] of rows.entries()) {
    const { programDateTimeMs, durationSec } = row
    const next = rows[index + 1]
    const usualSec = Math.min(closed.at(-1)?.durationSec ?? 0, targetSec)
    const gapSec =
      next === undefined
        ? Math.min(Math.max((wallMs - programDateTimeMs) / 1000, usualSec), targetSec)
        : Math.min((next.programDateTimeMs - programDateTimeMs) / 1000, targetSec + MAX_EXCESS_SEC)
    closed.push({ ...row, durationSec: durationSec ?? printedSec(Math.max(gapSec, MIN_GAP_SEC)) })
  }
  return closed
}

/** Segments of a rendition: the newest ones without one missing. */
export function listedSegments(
  rows: readonly ClosedRow[],
  rendition: RenditionName,
): ListedSegment[] {
  const segments: [ClosedRow, CheckpointSegment][] = []
  for (const row of rows.toReversed()) {
    const segment = row.segments.find((it) => it.rendition === rendition)
    if (segment === undefined) break
    segments.unshift([row, segment])
  }
  const entries: ListedSegment[] = []
  for (const [row, segment] of segments) {
    entries.push(listSegment(row, segment, entries.at(-1)?.map))
  }
  return entries
}

function listSegment(
  row: ClosedRow,
  segment: CheckpointSegment,
  mapBefore: string | undefined,
): ListedSegment {
  const {
    uri,
    map,
    programDateTimeMs = row.programDateTimeMs,
    durationSec = row.durationSec,
  } = segment
  return {
    mediaSequence: row.mediaSequence,
    discontinuitySequence: row.discontinuitySequence - (row.discontinuity ? 1 : 0),
    sizeBytes: segment.sizeBytes,
    independent: segment.independent,
    videoRange: segment.videoRange,
    segment: {
      uri,
      durationSec,
      programDateTimeMs,
      discontinuity: row.discontinuity,
      gap: true,
      ...(map !== mapBefore && { map }),
    },
    map: map ?? mapBefore,
    partCount: 0,
    parts: [],
    isEarlier: true,
    nextDateTimeMs: undefined,
    dropped: !segment.gap,
    longestPlaylistSec: 0,
  }
}

/** @returns a duration as it is printed */
export function printedSec(sec: number): number {
  return Number(sec.toFixed(DURATION_DECIMALS))
}

export function encodeMeter(state: MeterState): RenditionMeasurements {
  return { ...state, tracks: state.tracks.map(encodeTrack) }
}

export function decodeMeter(measured: RenditionMeasurements): MeterState {
  return { ...measured, tracks: measured.tracks.map(decodeTrack) }
}

function encodeTrack({ descriptors, ...track }: Track): CheckpointTrack {
  return { ...track, descriptors: descriptors.toString('base64') }
}

function decodeTrack({ descriptors, ...track }: CheckpointTrack): Track {
  return { ...track, descriptors: Buffer.from(descriptors, 'base64') }
}

export function encodeDateRange(range: DateRange): CheckpointDateRange {
  const { scte35Out, scte35In, scte35Cmd, ...rest } = range
  return {
    ...rest,
    ...(scte35Out && { scte35Out: scte35Out.toString('base64') }),
    ...(scte35In && { scte35In: scte35In.toString('base64') }),
    ...(scte35Cmd && { scte35Cmd: scte35Cmd.toString('base64') }),
  }
}

/** A break whose end can no longer be announced ends as planned. */
export function decodeDateRange(range: CheckpointDateRange): DateRange {
  const { scte35Out, scte35In, scte35Cmd, ...rest } = range
  const { durationSec = rest.plannedDurationSec } = rest
  return {
    ...rest,
    ...(durationSec !== undefined && { durationSec }),
    ...(scte35Out !== undefined && { scte35Out: Buffer.from(scte35Out, 'base64') }),
    ...(scte35In !== undefined && { scte35In: Buffer.from(scte35In, 'base64') }),
    ...(scte35Cmd !== undefined && { scte35Cmd: Buffer.from(scte35Cmd, 'base64') }),
  }
}
