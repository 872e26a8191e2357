/**
 * `index.json` of an archived run: what is in it, for people and programs, and what another process needs to go on.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import { CheckpointDateRange, CheckpointRow } from '../hls/playlist/checkpoint.ts'
import { RENDITION_PATTERN, type RenditionName } from '../hls/file-names.ts'

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Seconds = Type.Number({ minimum: 0, maximum: 1e9 })
const Time = Type.String({ maxLength: 32 })

const ArchiveIndex = Type.Object({
  version: Type.Literal(1),
  stream_id: Type.String({ maxLength: 128 }),
  run: Type.String({ maxLength: 64 }),
  /** COMPLETE: nothing will change any more. */
  state: Type.Union([Type.Literal('RUNNING'), Type.Literal('COMPLETE')]),
  /** Number of processes that have gone on with the run. */
  takeovers: Count,
  /** What the process that has stored the index puts before the names of its files; absent in older ones. */
  writer: Type.Optional(Type.String({ maxLength: 64 })),
  /** Under which it owned the stream in a cluster: it grows with each owner. */
  fence: Type.Optional(Count),
  start: Time,
  end: Time,
  /** Run in whose folder the next segments are, once this one has as many as a playlist may have. */
  next: Type.Optional(
    Type.Object({ run: Type.String({ maxLength: 64 }), media_sequence: Count, start: Time }),
  ),
  /** Sum of the segments, gaps included. */
  duration_sec: Seconds,
  size_bytes: Count,
  segments: Count,
  /** Where media is missing in at least one rendition: the first ones, each from a segment to the last one behind it. */
  gaps: Type.Array(Type.Object({ start: Time, duration_sec: Seconds })),
  gap_count: Count,
  gap_sec: Seconds,
  target_duration_sec: Count,
  renditions: Type.Array(
    Type.Object({
      name: Type.Unsafe<RenditionName>(Type.String({ pattern: RENDITION_PATTERN })),
      playlist: Type.String(),
      tracks: Type.Array(
        Type.Object({
          kind: Type.String(),
          codec: Type.String(),
          language: Type.Optional(Type.String()),
          width: Type.Optional(Count),
          height: Type.Optional(Count),
        }),
      ),
    }),
    { maxItems: 64 },
  ),
  date_ranges: Type.Array(CheckpointDateRange),
  /** Segments that are stored and that the playlists do not list yet. */
  rows: Type.Array(CheckpointRow),
  /** Rows that are not listed so far, since some of their media is not stored. */
  waiting: Type.Array(CheckpointRow),
})

export type ArchiveIndex = Static<typeof ArchiveIndex>

/** @returns undefined for something else */
export function parseIndex(text: string): ArchiveIndex | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Check(ArchiveIndex, value) ? value : undefined
  } catch {
    return undefined
  }
}
