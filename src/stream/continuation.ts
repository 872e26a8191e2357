/**
 * State that a stream takes over from an earlier process.
 *
 * @module
 */
import { formatOf } from '../hls/file-names.ts'
import type { PackagerOptions } from '../hls/packager.ts'
import { closeRows, type ClosedRow, decodeMeter } from '../hls/playlist/checkpoint-rows.ts'
import type { StreamCheckpoint } from '../hls/playlist/checkpoint.ts'
import type { Track } from '../mpegts/track.ts'

interface Continuation {
  readonly checkpoint: StreamCheckpoint
  /** Rows to list; none unless their playlists were published. */
  readonly rows: readonly ClosedRow[]
  readonly packager: Pick<PackagerOptions, 'earlier' | 'renditions' | 'sequenceStart'>
  /** Tracks that were carried last. */
  readonly tracks: readonly Track[]
  /** Whether an encoder was connected. */
  readonly begun: boolean
}

/** @param wallMs  milliseconds since 1970 */
export function continueStream(checkpoint: StreamCheckpoint, wallMs: number): Continuation {
  const { targets, renditions, free: sequenceStart } = checkpoint
  const begun = checkpoint.rows.length > 0
  // No playlist has been published: the stream begins anew, with numbers of its own.
  if (targets === undefined) {
    return { checkpoint, rows: [], packager: { sequenceStart }, tracks: [], begun }
  }
  const rows = closeRows(checkpoint, targets, wallMs)
  const last = rows.at(-1)
  const endMs = last === undefined ? 0 : last.programDateTimeMs + last.durationSec * 1000
  const { formats = ['ts'] } = checkpoint.media
  const names = renditions
    .map(({ name }) => name)
    .filter((name) => formats.includes(formatOf(name)))
  const carried = renditions.flatMap(({ measured }) =>
    measured ? decodeMeter(measured).tracks : [],
  )
  const tracks = new Map(carried.map((track) => [track.pid, track]))
  return {
    checkpoint,
    rows,
    packager: { sequenceStart, earlier: { targets, endMs }, renditions: names },
    tracks: [...tracks.values()],
    begun: true,
  }
}
