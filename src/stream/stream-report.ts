/**
 * Report of a stream, and of its main playlist.
 *
 * @module
 */
import type {
  LatencyReport,
  PlaylistReport,
  StreamReport,
  StreamTotals,
  TrackReport,
  Warning,
} from '../api/records.ts'
import type { LivePresentation } from '../hls/playlist/live-presentation.ts'
import { holdBackSec } from '../hls/playlist/playlist-format.ts'
import type { TargetDurations } from '../hls/target-durations.ts'
import type { Track } from '../mpegts/track.ts'
import type { LifeCycle } from './life-cycle.ts'
import type { Encoder } from './publication.ts'
import type { Sources } from './sources.ts'

interface ReportedStream {
  readonly id: string
  readonly life: LifeCycle
  readonly encoder: Encoder | undefined
  readonly sources: Sources
  readonly readers: StreamReport['readers']
  readonly tracks: readonly Track[]
  /** Duration of a GOP; undefined before the first is complete. */
  readonly gopSec: number | undefined
  readonly presentation: LivePresentation
  readonly wantedSegments: number
  readonly queuedBytes: number
  readonly totals: StreamTotals
  readonly warnings: readonly Warning[]
}

export function reportStream(stream: ReportedStream): StreamReport {
  const { id, life, encoder, readers, tracks, presentation, queuedBytes, totals } = stream
  const { onAir, encoders } = stream.sources
  const publisher = encoder?.report()
  const { startedAtMs, liveSinceMs, interruption, stopsAtMs } = life
  const { targets } = presentation
  return {
    streamId: id,
    status: life.state,
    live: liveSinceMs !== undefined,
    startedAt: new Date(startedAtMs),
    ...(liveSinceMs === undefined ? {} : { liveSince: new Date(liveSinceMs) }),
    ...(interruption && {
      interruption: { since: new Date(interruption.atMs), reason: interruption.reason },
    }),
    ...(stopsAtMs !== undefined && { stopsAt: new Date(stopsAtMs) }),
    ...(publisher === undefined ? {} : { publisher }),
    ...(onAir && { onAir: onAir.name }),
    sources: encoders.map((source) => ({
      source: source.encoder.source ?? 'main',
      ready: source === onAir || source.gop.begun,
      connection: source.encoder.report(),
    })),
    readers,
    tracks: tracks.map((track) => reportTrack(track, stream)),
    playlist: reportPlaylist(presentation, stream.wantedSegments),
    ...(targets && { latency: describeLatency(targets, publisher?.latencyMs ?? 0) }),
    queuedBytes,
    totals,
    warnings: stream.warnings,
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

/**
 * Latency that viewers can expect.
 *
 * @param srtMs  latency of the SRT connection
 */
function describeLatency(targets: TargetDurations, srtMs: number): LatencyReport {
  const partMs = Math.ceil((targets.partTargetSec ?? targets.targetSec) * 1000)
  const holdBackMs = Math.ceil(holdBackSec(targets) * 1000)
  return { srtMs, partMs, holdBackMs, expectedMs: srtMs + partMs + holdBackMs }
}

function reportTrack(
  track: Track,
  { sources, gopSec }: Pick<ReportedStream, 'sources' | 'gopSec'>,
): TrackReport {
  const { pid, kind, codec, language, parameters } = track
  const bitrateBps = sources.onAir?.publication.bitrates.get(pid)
  const isMeasured = kind === 'video' && bitrateBps !== undefined && gopSec !== undefined
  return {
    pid,
    kind,
    codec,
    ...(language === undefined ? {} : { language }),
    ...parameters,
    ...(bitrateBps !== undefined && { bitrateBps }),
    ...(isMeasured && { gopSec }),
  }
}
