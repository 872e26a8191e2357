/**
 * Options of streams, from the settings and from the request that starts a stream.
 *
 * @module
 */
import { addressList } from '../binary/address-list.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { parseFormats, parseUrls } from '../config/setting-types.ts'
import type { Format, StartRequest, StreamOptions } from '../contract/streams.ts'
import { MillraceError } from '../errors.ts'
import { parseProgramChoice } from '../mpegts/program-choice.ts'
import type { StreamTerms } from '../stream/stream-terms.ts'
import type { MediaOptions } from '../hls/media-options.ts'
import type { Settings } from './settings.ts'

/** Settings for the media of all streams. */
export interface MediaSettings {
  readonly formats: readonly Format[]
  readonly segmentSec: number
  readonly maxSegmentSec: number
  readonly playlistSegments: number
  readonly lowLatency: boolean
  readonly partMs: number
}

/** Options for its media that a stream has of its own. */
export type OwnMedia = Pick<StartRequest, 'formats' | 'segmentSec' | 'partMs' | 'playlistSegments'>

/** Options of all streams, from the settings. */
export function streamSettings(config: Config) {
  const { maxStreams, reconnectGraceSec, resumeStreams } = config
  const hls = { ...config.hls, formats: parseFormats(config.hls.formats) }
  return {
    ...hls,
    ...streamMedia(hls),
    program: parseProgramChoice(config.ts.program),
    maxStreams,
    reconnectGraceSec,
    maxBitrateBps: config.ingest.maxMbps * 1e6 || Infinity,
    // The registry of a cluster knows which streams go on.
    resume: resumeStreams && config.redisUrl === '',
    hasPlaybackSecret: config.playbackSecret !== '',
    webhookUrls: parseUrls(config.defaultWebhookUrls),
  }
}

/** Options of all streams, with the clock and the secrets that stream keys and nodes of a cluster need. */
export function sharedSettings(settings: Settings, clock: Clock) {
  const readJwtSecrets = () => settings.secrets.jwt
  const readClusterSecrets = () => settings.secrets.cluster
  return { ...streamSettings(settings.config), clock, readJwtSecrets, readClusterSecrets }
}

/** Options for the media of a stream: parts only in CMAF. */
export function streamMedia(
  settings: MediaSettings,
  own: OwnMedia = {},
): MediaOptions & Pick<MediaSettings, 'formats'> {
  const { formats, segmentSec, partMs, playlistSegments } = { ...settings, ...givenMedia(own) }
  const hasParts = settings.lowLatency && formats.includes('cmaf')
  return { formats, segmentSec, playlistSegments, partSec: hasParts ? partMs / 1000 : undefined }
}

/** Options for the media of a stream that are given. */
export function givenMedia({ formats, segmentSec, partMs, playlistSegments }: OwnMedia): OwnMedia {
  return {
    ...(formats !== undefined && { formats }),
    ...(segmentSec !== undefined && { segmentSec }),
    ...(partMs !== undefined && { partMs }),
    ...(playlistSegments !== undefined && { playlistSegments }),
  }
}

/** @throws {MillraceError} `BODY_INVALID` for a value that the settings do not allow */
export function checkMedia(
  { formats, segmentSec, partMs }: OwnMedia,
  settings: Pick<MediaSettings, 'formats' | 'maxSegmentSec' | 'lowLatency'>,
): void {
  if (segmentSec !== undefined && segmentSec > settings.maxSegmentSec) {
    throw invalid(`segment_sec must be at most HLS_MAX_SEGMENT_SEC, ${settings.maxSegmentSec}`)
  }
  if (partMs === undefined) return
  if (!settings.lowLatency) throw invalid('part_ms must be absent: HLS_LOW_LATENCY is false')
  if ((formats ?? settings.formats).includes('cmaf')) return
  const name = formats === undefined ? 'HLS_FORMATS' : 'formats'
  throw invalid(`part_ms must be absent: ${name} is ts, and only cmaf has parts`)
}

/**
 * @returns only the terms that the request contains
 * @throws {MillraceError} `BODY_INVALID` for a value that the settings do not allow
 */
export function streamTerms(
  request: StartRequest,
  { hasPlaybackSecret }: { readonly hasPlaybackSecret: boolean },
): StreamTerms {
  if (request.playbackToken === true && !hasPlaybackSecret) {
    throw invalid('playback_token must be false or absent: PLAYBACK_SECRET is not set')
  }
  return chosenTerms(request)
}

/** Terms of one stream, which the settings allow; only those that are given. */
export function chosenTerms({
  latencyMs,
  allowFrom,
  playbackToken,
}: Pick<StartRequest, 'latencyMs' | 'allowFrom' | 'playbackToken'>): StreamTerms {
  return {
    ...(latencyMs !== undefined && { latencyMs }),
    ...(allowFrom !== undefined && { allowFrom: addressList(allowFrom) }),
    ...(playbackToken !== undefined && { playbackToken }),
  }
}

/**
 * @param known  options of the running stream, which keeps those for its media; undefined for a new one
 * @returns all options that the stream has of its own
 */
export function ownOptions(request: StartRequest, known?: StreamOptions): StreamOptions {
  const { latencyMs, allowFrom } = request
  return {
    ...(known ?? givenMedia(request)),
    ...(latencyMs !== undefined && { latencyMs }),
    ...(allowFrom !== undefined && { allowFrom }),
  }
}

function invalid(message: string): MillraceError {
  return new MillraceError('BODY_INVALID', { message })
}
