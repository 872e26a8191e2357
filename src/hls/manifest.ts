/**
 * Manifest of a stream: what another process needs to continue its playlists under the same URLs. Plain JSON, and
 * checked when it is read, since it comes from outside.
 *
 * Numbers and dates are those that the playlists print, so that the continued playlists print them again.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import type { Codec } from '../mpegts/track.ts'
import type { RenditionName } from './file-names.ts'

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
const Name = Type.Unsafe<RenditionName>(
  Type.String({ pattern: '^(main|(cmaf-)?(video|audio)-[1-9][0-9]{0,2})$' }),
)
const VideoRange = Type.Union([Type.Literal('SDR'), Type.Literal('HLG'), Type.Literal('PQ')])
const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$', maxLength: 16_384 })

const Duration = Type.Number({ exclusiveMinimum: 0, maximum: 3600 })

const ManifestSegment = Type.Object({
  rendition: Name,
  uri: Type.String({ pattern: '^[A-Za-z0-9_-]{1,120}\\.(ts|m4s)$' }),
  /** URI of the init segment. */
  map: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{1,120}\\.mp4$' })),
  /** Date and duration where they differ from those of the row: of audio in CMAF. */
  programDateTimeMs: Type.Optional(DateMs),
  durationSec: Type.Optional(Duration),
  sizeBytes: Count,
  independent: Type.Boolean(),
  gap: Type.Boolean(),
  videoRange: Type.Optional(VideoRange),
})

const ManifestRow = Type.Object({
  mediaSequence: Count,
  discontinuitySequence: Count,
  discontinuity: Type.Boolean(),
  programDateTimeMs: DateMs,
  durationSec: Type.Optional(Duration),
  segments: Type.Array(ManifestSegment, { minItems: 1, maxItems: MAX_RENDITIONS }),
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

const ManifestTrack = Type.Object({
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
  tracks: Type.Array(ManifestTrack, { maxItems: MAX_TRACKS }),
  peakBps: Seconds,
  sizeBytes: Count,
  durationSec: Seconds,
  videoFrames: Count,
  videoSec: Seconds,
})

const ManifestRendition = Type.Object({
  name: Name,
  listed: Type.Boolean(),
  measured: Type.Optional(RenditionMeasurements),
})

const ManifestDateRange = Type.Object({
  id: Type.String({ pattern: '^[A-Za-z0-9_.:-]{1,128}$' }),
  startMs: DateMs,
  durationSec: Type.Optional(Seconds),
  plannedDurationSec: Type.Optional(Seconds),
  scte35Out: Type.Optional(Base64),
  scte35In: Type.Optional(Base64),
  scte35Cmd: Type.Optional(Base64),
})

const HEAD = {
  media: Type.Object({
    segmentSec: Type.Number({ exclusiveMinimum: 0, maximum: 3600 }),
    playlistSegments: Type.Integer({ minimum: 1, maximum: 1000 }),
    partSec: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
    formats: Type.Optional(
      Type.Array(Type.Union([Type.Literal('ts'), Type.Literal('cmaf')]), {
        minItems: 1,
        maxItems: 2,
      }),
    ),
  }),
  targets: Type.Optional(
    Type.Object({
      targetSec: Type.Integer({ minimum: 1, maximum: 3600 }),
      partTargetSec: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
    }),
  ),
  free: Type.Object({ media: Count, discontinuity: Count }),
  listedFrom: Count,
  renditions: Type.Array(ManifestRendition, { maxItems: MAX_RENDITIONS }),
  dateRanges: Type.Array(ManifestDateRange, { maxItems: MAX_DATE_RANGES }),
}

const StreamManifest = Type.Object({
  ...HEAD,
  rows: Type.Array(ManifestRow, { maxItems: MAX_ROWS }),
})

/**
 * Everything but the rows.
 *
 * - `targets`: undefined until they are fixed; then no playlist has been published.
 * - `free`: lowest numbers that the stream has not used; segments that were opened count as used.
 * - `listedFrom`: number of the oldest listed segment. Rows of lower numbers have left the playlists, and are retained.
 * - `renditions`: all that have a playlist, the first one first; `listed` in the multivariant playlist, or not any more.
 */
export type ManifestHead = Omit<StreamManifest, 'rows'>

/** Head, and the rows of the segments that are retained, listed or open, in order of their numbers. */
export type StreamManifest = Static<typeof StreamManifest>

/**
 * Segments of one media sequence number in all renditions, the first one first. `durationSec` is undefined while the
 * segment is open: its number and its URIs are taken, and its segments are gaps if they are never complete.
 */
export type ManifestRow = Static<typeof ManifestRow>

export type ManifestSegment = Static<typeof ManifestSegment>
export type ManifestTrack = Static<typeof ManifestTrack>
export type ManifestDateRange = Static<typeof ManifestDateRange>

/** Measurements of a rendition for the multivariant playlist; `tracks` are those of its newest segment. */
export type RenditionMeasurements = Static<typeof RenditionMeasurements>

export interface ManifestChange {
  readonly head: ManifestHead
  /** Rows that are new or have changed, in order of their numbers. */
  readonly rows: readonly ManifestRow[]
  /** Lowest number of all rows; lower rows are gone. */
  readonly oldest: number
}

/** @param manifest  before the change; undefined for the first one */
export function applyChange(
  manifest: StreamManifest | undefined,
  { head, rows, oldest }: ManifestChange,
): StreamManifest {
  const byNumber = new Map<number, ManifestRow>()
  for (const row of [...(manifest?.rows ?? []), ...rows]) byNumber.set(row.mediaSequence, row)
  return { ...head, rows: inOrder([...byNumber.values()], oldest) }
}

/**
 * Reads a manifest.
 *
 * @returns undefined if it has another form. Of rows that contradict each other, only the newest are in it that lead up
 *   to the free numbers
 */
export function parseManifest(value: unknown): StreamManifest | undefined {
  if (!Check(StreamManifest, value)) return undefined
  const rows = inOrder(value.rows)
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
  { programDateTimeMs, durationSec = 0, segments }: ManifestRow,
  after: ManifestRow | undefined,
  { targets, renditions }: StreamManifest,
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

function inOrder(rows: readonly ManifestRow[], oldest = 0): ManifestRow[] {
  return rows
    .filter(({ mediaSequence }) => mediaSequence >= oldest)
    .toSorted((a, b) => a.mediaSequence - b.mediaSequence)
}
