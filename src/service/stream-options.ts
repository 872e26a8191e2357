/**
 * Options of streams, from the settings and from the request that starts a stream.
 *
 * @module
 */
import { addressList } from '../binary/address-list.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { parseUrls } from '../config/setting-types.ts'
import type { StartRequest, StreamOptions } from '../contract/streams.ts'
import { MillraceError } from '../errors.ts'
import { parseProgramChoice } from '../mpegts/program-choice.ts'
import type { StreamTerms } from '../stream/stream-terms.ts'
import type { MediaOptions } from '../hls/media-options.ts'
import type { Settings } from './settings.ts'
import type { LiveStreamOptions } from '../stream/live-stream-options.ts'

/** Options of all streams, from the settings. */
export function streamSettings(config: Config) {
  const { hls, maxStreams, reconnectGraceSec, resumeStreams } = config
  return {
    ...hls,
    formats: ['ts', 'cmaf'] as const,
    partSec: hls.lowLatency ? hls.partMs / 1000 : undefined,
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

/** @throws {MillraceError} `BODY_INVALID` for a value that the settings do not allow */
export function mediaOptions(
  { segmentSec, partMs, playlistSegments }: StartRequest,
  settings: Pick<LiveStreamOptions, 'maxSegmentSec' | 'partSec'>,
): Partial<MediaOptions> {
  if (segmentSec !== undefined && segmentSec > settings.maxSegmentSec) {
    throw invalid(`segment_sec must be at most HLS_MAX_SEGMENT_SEC, ${settings.maxSegmentSec}`)
  }
  if (partMs !== undefined && settings.partSec === undefined) {
    throw invalid('part_ms must be absent: HLS_LOW_LATENCY is false')
  }
  return chosenMedia({ segmentSec, partMs, playlistSegments })
}

/** Options for the media of one stream, which the settings allow. */
export function chosenMedia({
  segmentSec,
  partMs,
  playlistSegments,
}: Pick<StartRequest, 'segmentSec' | 'partMs' | 'playlistSegments'>): Partial<MediaOptions> {
  return {
    ...(segmentSec !== undefined && { segmentSec }),
    ...(partMs !== undefined && { partSec: partMs / 1000 }),
    ...(playlistSegments !== undefined && { playlistSegments }),
  }
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
  const { segmentSec, partMs, playlistSegments, latencyMs, allowFrom } = request
  const media = known ?? {
    ...(segmentSec !== undefined && { segmentSec }),
    ...(partMs !== undefined && { partMs }),
    ...(playlistSegments !== undefined && { playlistSegments }),
  }
  return {
    ...media,
    ...(latencyMs !== undefined && { latencyMs }),
    ...(allowFrom !== undefined && { allowFrom }),
  }
}

function invalid(message: string): MillraceError {
  return new MillraceError('BODY_INVALID', { message })
}
