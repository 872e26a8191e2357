/**
 * Options for its media that a stream may have of its own, in the units of the packager. Checkpoints have them as well, and are
 * checked against them: a new option is optional, and bounds are never made tighter, or streams of nodes of an earlier version
 * lose their windows. To add one: the list in `api/stream-options.ts`.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import type { Format } from './file-names.ts'

export const MediaOptions = Type.Object({
  /** Formats of the segments; default: transport stream alone. */
  formats: Type.Optional(
    Type.Unsafe<readonly Format[] | undefined>(
      Type.Array(Type.Enum(['ts', 'cmaf']), { minItems: 1, maxItems: 2 }),
    ),
  ),
  segmentSec: Type.Number({ exclusiveMinimum: 0, maximum: 3600 }),
  playlistSegments: Type.Integer({ minimum: 1, maximum: 1000 }),
  /** Desired duration of a part of low-latency HLS, which CMAF has; default: no parts. */
  partSec: Type.Optional(
    Type.Unsafe<number | undefined>(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
  ),
})

export type MediaOptions = Readonly<Static<typeof MediaOptions>>

/** @returns the options that `values` has, and nothing else */
export function mediaOptionsOf(values: MediaOptions): MediaOptions {
  const names = Object.keys(MediaOptions.properties) as (keyof MediaOptions)[]
  const given = names.filter((name) => values[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, values[name]])) as unknown as MediaOptions
}
