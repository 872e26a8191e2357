/**
 * Checkpoint of a stream: what another process needs to continue its playlists under the same URLs. Plain JSON, and
 * checked when it is read, since it comes from outside.
 *
 * Numbers and dates are those that the playlists print, so that the continued playlists print them again.
 *
 * While nodes of a cluster are upgraded one by one, new ones continue streams of the earlier version. A field that is added is
 * optional, or has a default in `cluster/node/registered/registered-checkpoint.ts`; otherwise the upgrade loses all windows.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import type { Codec } from '../../mpegts/track.ts'
import {
  INIT_URI_PATTERN,
  RENDITION_PATTERN,
  SEGMENT_URI_PATTERN,
  type RenditionName,
} from '../file-names.ts'
import { MediaOptions } from '../media-options.ts'

/** Max number of rows: the longest window that can be set, as many retained segments, and some that are open. */
const MAX_ROWS = 2048
/** 8 variants and 16 alternative audio tracks, in each of two formats. */
const MAX_RENDITIONS = 64
const MAX_TRACKS = 48
const MAX_DATE_RANGES = 64

/** End of the year 9999, the last with four digits. */
const MAX_DATE_MS = 253_402_300_799_999

/** Excess of EXTINF over EXT-X-TARGETDURATION that rounding permits (RFC 8216bis 4.4.3.1). */
const MAX_EXCESS_SEC = 0.5

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Seconds = Type.Number({ minimum: 0, maximum: 1e9 })
const DateMs = Type.Number({ minimum: 0, maximum: MAX_DATE_MS })
const Name = Type.Unsafe<RenditionName>(Type.String({ pattern: RENDITION_PATTERN }))
const VideoRange = Type.Union([Type.Literal('SDR'), Type.Literal('HLG'), Type.Literal('PQ')])
const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$', maxLength: 16_384 })

const Duration = Type.Number({ exclusiveMinimum: 0, maximum: 3600 })

const CheckpointSegment = Type.Object({
  rendition: Name,
  uri: Type.String({ pattern: SEGMENT_URI_PATTERN }),
  /** URI of the init segment. */
  map: Type.Optional(Type.String({ pattern: INIT_URI_PATTERN })),
  /** Date and duration where they differ from those of the row: of audio in CMAF. */
  programDateTimeMs: Type.Optional(DateMs),
  durationSec: Type.Optional(Duration),
  sizeBytes: Count,
  independent: Type.Boolean(),
  gap: Type.Boolean(),
  videoRange: Type.Optional(VideoRange),
})

export const CheckpointRow = Type.Object({
  mediaSequence: Count,
  discontinuitySequence: Count,
  discontinuity: Type.Boolean(),
  programDateTimeMs: DateMs,
  durationSec: Type.Optional(Duration),
  segments: Type.Array(CheckpointSegment, { minItems: 1, maxItems: MAX_RENDITIONS }),
})

const Parameters = Type.Object({
  codecString: Type.String({ pattern: '^[A-Za-z0-9.-]{0,64}$' }),
  width: Type.Optional(Count),
  height: Type.Optional(Count),
  frameRate: Type.Optional(Type.Number({ minimum: 0, maximum: 100_000 })),
  videoRange: Type.Optional(VideoRange),
  sampleRate: Type.Optional(Count),
  channels: Type.Optional(Count),
  closedCaptions: Type.Optional(Type.Boolean()),
})

const CheckpointTrack = Type.Object({
  pid: Type.Integer({ minimum: 0, maximum: 0x1fff }),
  streamType: Type.Integer({ minimum: 0, maximum: 0xff }),
  kind: Type.Union([Type.Literal('video'), Type.Literal('audio'), Type.Literal('data')]),
  codec: Type.Unsafe<Codec>(Type.String({ pattern: '^[a-z0-9-]{1,16}$' })),
  descriptors: Base64,
  label: Type.Optional(Type.String({ maxLength: 64 })),
  language: Type.Optional(Type.String({ pattern: '^[a-z]{3}$' })),
  parameters: Type.Optional(Parameters),
})

const RenditionMeasurements = Type.Object({
  tracks: Type.Array(CheckpointTrack, { maxItems: MAX_TRACKS }),
  peakBps: Seconds,
  sizeBytes: Count,
  durationSec: Seconds,
  videoFrames: Count,
  videoSec: Seconds,
})

const CheckpointRendition = Type.Object({
  name: Name,
  listed: Type.Boolean(),
  measured: Type.Optional(RenditionMeasurements),
})

export const CheckpointDateRange = Type.Object({
  id: Type.String({ pattern: '^[A-Za-z0-9_.:-]{1,128}$' }),
  startMs: DateMs,
  durationSec: Type.Optional(Seconds),
  plannedDurationSec: Type.Optional(Seconds),
  scte35Out: Type.Optional(Base64),
  scte35In: Type.Optional(Base64),
  scte35Cmd: Type.Optional(Base64),
})

const HEAD = {
  media: MediaOptions,
  targets: Type.Optional(
    Type.Object({
      targetSec: Type.Integer({ minimum: 1, maximum: 3600 }),
      partTargetSec: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
    }),
  ),
  free: Type.Object({ media: Count, discontinuity: Count }),
  listedFrom: Count,
  renditions: Type.Array(CheckpointRendition, { maxItems: MAX_RENDITIONS }),
  dateRanges: Type.Array(CheckpointDateRange, { maxItems: MAX_DATE_RANGES }),
}

const StreamCheckpoint = Type.Object({
  ...HEAD,
  rows: Type.Array(CheckpointRow, { maxItems: MAX_ROWS }),
})

/**
 * Everything but the rows.
 *
 * - `targets`: undefined until they are fixed; then no playlist has been published.
 * - `free`: lowest numbers that the stream has not used; segments that were opened count as used.
 * - `listedFrom`: number of the oldest listed segment. Rows of lower numbers have left the playlists, and are retained.
 * - `renditions`: all that have a playlist, the first one first; `listed` in the multivariant playlist, or not any more.
 */
export type CheckpointHead = Omit<StreamCheckpoint, 'rows'>

/** Head, and the rows of the segments that are retained, listed or open, in order of their numbers. */
export type StreamCheckpoint = Static<typeof StreamCheckpoint>

/**
 * Segments of one media sequence number in all renditions, the first one first. `durationSec` is undefined while the
 * segment is open: its number and its URIs are taken, and its segments are gaps if they are never complete.
 */
export type CheckpointRow = Static<typeof CheckpointRow>

export type CheckpointSegment = Static<typeof CheckpointSegment>
export type CheckpointTrack = Static<typeof CheckpointTrack>
export type CheckpointDateRange = Static<typeof CheckpointDateRange>

/** Measurements of a rendition for the multivariant playlist; `tracks` are those of its newest segment. */
export type RenditionMeasurements = Static<typeof RenditionMeasurements>

export interface CheckpointChange {
  readonly head: CheckpointHead
  /** Rows that are new or have changed, in order of their numbers. */
  readonly rows: readonly CheckpointRow[]
  /** Lowest number of all rows; lower rows are gone. */
  readonly oldest: number
}

/**
 * Reads a checkpoint.
 *
 * @returns undefined if it has another form. Where rows contradict each other, the newest ones remain that lead up to the
 *   free numbers
 */
export function parseCheckpoint(value: unknown): StreamCheckpoint | undefined {
  if (!Check(StreamCheckpoint, value)) return undefined
  const rows = value.rows.toSorted((a, b) => a.mediaSequence - b.mediaSequence)
  let next = value.free
  let from = rows.length
  for (; from > 0; from--) {
    const { mediaSequence, discontinuitySequence, discontinuity } = rows[from - 1]!
    const isNext =
      mediaSequence === next.media - 1 && discontinuitySequence === next.discontinuity - 1
    if (!isNext || !isUsable(rows[from - 1]!, rows[from], value)) break
    next = { media: mediaSequence, discontinuity: next.discontinuity - (discontinuity ? 1 : 0) }
  }
  return { ...value, rows: rows.slice(from) }
}

function isUsable(
  { programDateTimeMs, durationSec = 0, segments }: CheckpointRow,
  after: CheckpointRow | undefined,
  { targets, renditions }: StreamCheckpoint,
): boolean {
  const names = segments.map(({ rendition }) => rendition)
  const longestSec = Math.max(durationSec, ...segments.map((it) => it.durationSec ?? 0))
  return (
    names[0] === (renditions[0]?.name ?? 'main') &&
    new Set(names).size === names.length &&
    longestSec < (targets?.targetSec ?? Infinity) + MAX_EXCESS_SEC &&
    programDateTimeMs <= (after?.programDateTimeMs ?? Infinity)
  )
}
