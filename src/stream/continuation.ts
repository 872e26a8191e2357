/**
 * What a stream takes over from an earlier process.
 *
 * @module
 */
import { formatOf } from '../hls/file-names.ts'
import type { PackagerOptions } from '../hls/packager.ts'
import { closeRows, type ClosedRow } from '../hls/playlist/manifest-rows.ts'
import { decodeMeter } from '../hls/playlist/manifest-head.ts'
import type { StreamManifest } from '../hls/manifest.ts'
import type { Track } from '../mpegts/track.ts'

export interface Continuation {
  readonly manifest: StreamManifest
  /** Rows to list; none unless their playlists were published. */
  readonly rows: readonly ClosedRow[]
  readonly packager: Pick<PackagerOptions, 'earlier' | 'renditions' | 'sequenceStart'>
  /** Tracks that were carried last. */
  readonly tracks: readonly Track[]
  /** Whether an encoder was connected. */
  readonly begun: boolean
}

/** @param wallMs  milliseconds since 1970 */
export function continueStream(manifest: StreamManifest, wallMs: number): Continuation {
  const { targets, renditions, free: sequenceStart } = manifest
  const begun = manifest.rows.length > 0
  // No playlist has been published: the stream begins anew, with numbers of its own.
  if (targets === undefined) {
    return { manifest, rows: [], packager: { sequenceStart }, tracks: [], begun }
  }
  const rows = closeRows(manifest, targets, wallMs)
  const last = rows.at(-1)
  const endMs = last === undefined ? 0 : last.programDateTimeMs + last.durationSec * 1000
  const { formats = ['ts'] } = manifest.media
  const names = renditions
    .map(({ name }) => name)
    .filter((name) => formats.includes(formatOf(name)))
  const carried = renditions.flatMap(({ measured }) =>
    measured ? decodeMeter(measured).tracks : [],
  )
  const tracks = new Map(carried.map((track) => [track.pid, track]))
  return {
    manifest,
    rows,
    packager: { sequenceStart, earlier: { targets, endMs }, renditions: names },
    tracks: [...tracks.values()],
    begun: true,
  }
}
