/**
 * What the settings give streams without options of their own, and which options they allow.
 *
 * @module
 */
import type { Clock } from '../timing/clock.ts'
import { isClustered } from '../config/complete-settings.ts'
import type { Config } from '../config/schema.ts'
import { parseFormats, parseUrls } from '../config/setting-types.ts'
import type { Format } from '../hls/file-names.ts'
import {
  given,
  MEDIA_OPTIONS,
  STREAM_OPTIONS,
  type OwnMedia,
  type OwnOptions,
} from '../api/stream-options.ts'
import type { StreamOptions } from '../api/records.ts'
import { MillraceError } from '../errors.ts'
import { parseProgramChoice } from '../mpegts/program-choice.ts'
import { mediaOptionsOf, type MediaOptions } from '../hls/media-options.ts'
import type { Settings } from './settings-in-use.ts'

/** Settings for the media of all streams. */
export interface MediaSettings extends Omit<MediaOptions, 'partSec'> {
  readonly formats: readonly Format[]
  readonly maxSegmentSec: number
  readonly lowLatency: boolean
  readonly partMs: number
}

/** Settings that bound the options of a stream. */
export interface OptionBounds extends Pick<
  MediaSettings,
  'formats' | 'maxSegmentSec' | 'lowLatency'
> {
  /** Whether `PLAYBACK_SECRET` is set. */
  readonly hasPlaybackSecret: boolean
  /** Streams that are archived: all, or those that say so; default: none. */
  readonly archives?: 'all' | 'request' | undefined
}

/** Options of all streams, from the settings. */
export function streamSettings(config: Config) {
  const { maxStreams, reconnectGraceSec, resumeStreams } = config
  const { failoverMs, failbackSec, slateAfterSec } = config
  const hls = { ...config.hls, formats: parseFormats(config.hls.formats) }
  return {
    ...hls,
    ...streamMedia(hls),
    program: parseProgramChoice(config.ts.program),
    maxStreams,
    reconnectGraceSec,
    failoverMs,
    failbackSec,
    slateAfterSec,
    maxBitrateBps: config.ingest.maxMbps * 1e6 || Infinity,
    // The registry of a cluster knows which streams go on.
    resume: resumeStreams && !isClustered(config),
    hasPlaybackSecret: config.playbackSecret !== '',
    archives: archivesOf(config),
    webhookUrls: parseUrls(config.defaultWebhookUrls),
  }
}

function archivesOf({ archive: { url, mode } }: Config): OptionBounds['archives'] {
  if (url === '' || mode === 'off') return undefined
  return mode === 'request' ? 'request' : 'all'
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
  const media = { ...settings, ...given(MEDIA_OPTIONS, own) }
  const { lowLatency, formats, partMs } = media
  const hasParts = lowLatency && formats.includes('cmaf')
  return { ...mediaOptionsOf(media), formats, partSec: hasParts ? partMs / 1000 : undefined }
}

/**
 * Options of its own as the record of a stream lists them. Whether viewers need a playback token is another field of the
 * record.
 */
export function ownOptions(own: OwnOptions): StreamOptions {
  const { playbackToken: _, ...listed } = given(STREAM_OPTIONS, own)
  return listed
}

/**
 * Checks options against the settings.
 *
 * @param options  already checked against the schema
 * @throws {MillraceError} `BODY_INVALID` for a value that the settings do not allow
 */
export function checkOptions(
  { archive, dvrSec = 0, ...own }: OwnOptions,
  settings: OptionBounds,
): void {
  const { formats, segmentSec, partMs, playbackToken, slate, alwaysOn } = own
  if (segmentSec !== undefined && segmentSec > settings.maxSegmentSec) {
    throw invalid(`segment_sec must be at most HLS_MAX_SEGMENT_SEC, ${settings.maxSegmentSec}`)
  }
  if (playbackToken === true && !settings.hasPlaybackSecret) {
    throw invalid('playback_token must be false or absent: PLAYBACK_SECRET is not set')
  }
  if (dvrSec > 0 && settings.archives === undefined)
    throw invalid('dvr_sec must be 0 or absent: ARCHIVE_URL is not set, or ARCHIVE is off')
  if (dvrSec > 0 && !(archive ?? settings.archives === 'all'))
    throw invalid(
      'dvr_sec must be 0 or absent: archive is not true, and the archive has what is left',
    )
  if (alwaysOn === true && !slate)
    throw invalid('always_on must be false or absent: there is no slate')
  if (partMs === undefined) return
  if (!settings.lowLatency) throw invalid('part_ms must be absent: HLS_LOW_LATENCY is false')
  if ((formats ?? settings.formats).includes('cmaf')) return
  const name = formats === undefined ? 'HLS_FORMATS' : 'formats'
  throw invalid(`part_ms must be absent: ${name} is ts, and only cmaf has parts`)
}

function invalid(message: string): MillraceError {
  return new MillraceError('BODY_INVALID', { message })
}
