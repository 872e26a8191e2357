/**
 * Report of a stream, and of its main playlist.
 *
 * @module
 */
import {
  reportTrack,
  type PlaylistReport,
  type StreamReport,
  type StreamTotals,
  type Warning,
} from '../contract/report.ts'
import type { LivePresentation } from '../hls/playlist/live-presentation.ts'
import type { Track } from '../mpegts/track.ts'
import { describeLatency } from './latency.ts'
import type { LifeCycle } from './life-cycle.ts'
import type { Encoder } from './publication.ts'

export interface ReportedStream {
  readonly id: string
  readonly life: LifeCycle
  readonly encoder: Encoder | undefined
  readonly tracks: readonly Track[]
  readonly presentation: LivePresentation
  readonly wantedSegments: number
  readonly queuedBytes: number
  readonly totals: StreamTotals
  readonly warnings: readonly Warning[]
}

export function reportStream(stream: ReportedStream): StreamReport {
  const { id, life, encoder, tracks, presentation, queuedBytes, totals, warnings } = stream
  const publisher = encoder?.report()
  const { startedAtMs, liveSinceMs } = life
  const { targets } = presentation
  return {
    streamId: id,
    status: life.state,
    live: liveSinceMs !== undefined,
    startedAt: new Date(startedAtMs),
    ...(liveSinceMs === undefined ? {} : { liveSince: new Date(liveSinceMs) }),
    ...(publisher === undefined ? {} : { publisher }),
    tracks: tracks.map(reportTrack),
    playlist: reportPlaylist(presentation, stream.wantedSegments),
    ...(targets && { latency: describeLatency(targets, publisher?.latencyMs ?? 0) }),
    queuedBytes,
    totals,
    warnings,
  }
}

/** @param wantedSegments  minimum number of listed segments, memory permitting */
export function reportPlaylist(
  { listedSegments, files }: LivePresentation,
  wantedSegments: number,
): PlaylistReport {
  const { releasedEarly, refused: gaps } = files.shortage
  return { listedSegments, wantedSegments, releasedEarly, gaps }
}
