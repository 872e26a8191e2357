/**
 * Records of streams of other nodes: as their owners answer, or as the registry has them.
 *
 * @module
 */
import type { RegisteredStream } from '../../cluster/registry/records.ts'
import { decodeSettings } from '../../cluster/stream-settings.ts'
import type { Format, StreamRecord } from '../../contract/streams.ts'
import type { PublicUrls } from '../public-urls.ts'
import { ownOptionsOf } from '../registered-terms.ts'

export interface StoredRecordOptions {
  readonly urls: Pick<PublicUrls, 'playback'>
  /** Whether viewers need playback tokens, unless the stream is public. */
  readonly hasPlaybackSecret: boolean
  /** `HLS_FORMATS` */
  readonly formats: readonly Format[]
  /** `HLS_PLAYLIST_SEGMENTS` */
  readonly playlistSegments: number
  readonly wallMs: number
}

/** Sums of a stream that no encoder has published to. */
export const NO_TOTALS = {
  segments: 0,
  segmentBytes: 0,
  durationSec: 0,
  payloadsDropped: 0,
  publishers: 0,
} as const

/** Figures of a stream that no encoder has published to. */
const NO_FIGURES = {
  live: false,
  tracks: [],
  queuedBytes: 0,
  totals: NO_TOTALS,
  warnings: [],
  viewers: 0,
} as const

/** Record of what the registry has, which is everything as long as no node owns the stream. */
export function storedRecord(
  { id, status, owner, fence, startedAtMs, settings }: RegisteredStream,
  { urls, hasPlaybackSecret, formats, playlistSegments, wallMs }: StoredRecordOptions,
): StreamRecord {
  const shared = decodeSettings(settings)
  const { media, playbackToken, bannedUntilMs = 0 } = shared
  return {
    ...NO_FIGURES,
    streamId: id,
    status,
    startedAt: new Date(startedAtMs),
    playlist: {
      listedSegments: 0,
      wantedSegments: media?.playlistSegments ?? playlistSegments,
      releasedEarly: 0,
      gaps: 0,
    },
    ...urls.playback(id, media?.formats ?? formats),
    playbackToken: hasPlaybackSecret && playbackToken !== false,
    options: ownOptionsOf(shared),
    ...(bannedUntilMs > wallMs && { bannedUntil: new Date(bannedUntilMs) }),
    ...(owner !== undefined && { node: owner, fence, stale: true }),
  }
}

/** @param json  record of another node, which has signed for it */
export function parseRecord(json: StreamRecord): StreamRecord {
  const { startedAt, liveSince, bannedUntil } = json
  return {
    ...json,
    startedAt: new Date(startedAt),
    ...(liveSince !== undefined && { liveSince: new Date(liveSince) }),
    ...(bannedUntil !== undefined && { bannedUntil: new Date(bannedUntil) }),
  }
}
