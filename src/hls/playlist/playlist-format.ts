/**
 * Formatting of playlists (RFC 8216bis 4), and the end of a formatted one.
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import type { TargetDurations } from '../target-durations.ts'
import type {
  AudioRendition,
  ClosedCaptions,
  LowLatencyTags,
  MediaPlaylist,
  MultivariantPlaylist,
  PlaylistPart,
  PlaylistSegment,
  RenditionReport,
  Variant,
} from './playlist.ts'

/** Lowest versions that permit a decimal EXTINF, EXT-X-MAP, and EXT-X-SKIP (RFC 8216bis 8). */
const MEDIA_PLAYLIST_VERSION = 3
const MAP_VERSION = 6
const DELTA_UPDATE_VERSION = 9

/** Decimals of a duration in seconds: 10 µs, less than a tick of 90 kHz. */
const DURATION_DECIMALS = 5

/**
 * Excess of DURATION over the duration of a part. Shaka 5 takes a part that begins a hair before the end of the one
 * before, by rounding, for a jump: it drops video up to the next key frame.
 */
const PART_EXCESS_SEC = 10 ** -DURATION_DECIMALS

/** Distances from the end at which players start, in part and segment target durations (RFC 8216bis 4.4.3.8). */
const HOLD_BACK_TARGETS = 3

/** PART-HOLD-BACK or, for playlists without parts, HOLD-BACK. */
export function holdBackSec({ targetSec, partTargetSec }: TargetDurations): number {
  return (
    HOLD_BACK_TARGETS * (partTargetSec === undefined ? targetSec : roundUpDuration(partTargetSec))
  )
}

/** Text of a media playlist. */
export function formatMediaPlaylist(playlist: MediaPlaylist): string {
  const { segments, skippedSegments, dateRanges } = playlist
  const text = [
    ...dateRanges.map(formatDateRange),
    ...segments.slice(skippedSegments).map(formatSegment),
  ].join('')
  return `${formatHead(playlist)}${text}${formatTail(playlist)}`
}

/** Lines before the date ranges and the first segment. */
export function formatHead(playlist: Omit<MediaPlaylist, 'segments' | 'dateRanges'>): string {
  const { targetDurationSec, lowLatency, skipUntilSec, skippedSegments = 0 } = playlist
  const { hasMaps = false } = playlist
  const plainVersion = hasMaps ? MAP_VERSION : MEDIA_PLAYLIST_VERSION
  const version = skippedSegments > 0 ? DELTA_UPDATE_VERSION : plainVersion
  const lines = [
    '#EXTM3U',
    `#EXT-X-VERSION:${version}`,
    `#EXT-X-TARGETDURATION:${targetDurationSec}`,
  ]
  if (playlist.type !== undefined) lines.push(`#EXT-X-PLAYLIST-TYPE:${playlist.type}`)
  if (lowLatency !== undefined) lines.push(...formatPartControl(lowLatency, targetDurationSec))
  if (skipUntilSec !== undefined) {
    const holdBack = holdBackSec({ targetSec: targetDurationSec, partTargetSec: undefined })
    lines.push(`#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=${skipUntilSec},HOLD-BACK=${holdBack}`)
  }
  lines.push(
    `#EXT-X-MEDIA-SEQUENCE:${playlist.mediaSequence}`,
    `#EXT-X-DISCONTINUITY-SEQUENCE:${playlist.discontinuitySequence}`,
  )
  if (playlist.independentSegments) lines.push('#EXT-X-INDEPENDENT-SEGMENTS')
  if (skippedSegments > 0) lines.push(`#EXT-X-SKIP:SKIPPED-SEGMENTS=${skippedSegments}`)
  if (playlist.map !== undefined) lines.push(formatMap(playlist.map))
  return joinLines(lines)
}

/** Lines after the last complete segment. */
export function formatTail({
  ended,
  lowLatency,
}: Pick<MediaPlaylist, 'ended' | 'lowLatency'>): string {
  if (ended) return joinLines(['#EXT-X-ENDLIST'])
  return lowLatency === undefined ? '' : joinLines(formatLiveEdge(lowLatency))
}

/** Text of a multivariant playlist. */
export function formatMultivariantPlaylist(playlist: MultivariantPlaylist): string {
  // No EXT-X-INDEPENDENT-SEGMENTS: it would hold for all later segments too (RFC 8216bis 4.4.2.1).
  const lines = ['#EXTM3U']
  lines.push(...playlist.audios.map(formatAudio))
  const { closedCaptions } = playlist
  if (typeof closedCaptions === 'object') lines.push(formatCaptions(closedCaptions))
  lines.push(...playlist.variants.flatMap((variant) => formatVariant(variant, closedCaptions)))
  return joinLines(lines)
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

export function formatDateRange(range: DateRange): string {
  const attributes = [`ID="${range.id}"`, `START-DATE="${formatDate(range.startMs)}"`]
  const seconds = { DURATION: range.durationSec, 'PLANNED-DURATION': range.plannedDurationSec }
  for (const [name, sec] of Object.entries(seconds)) {
    if (sec !== undefined) attributes.push(`${name}=${formatDuration(sec)}`)
  }
  const sections = {
    'SCTE35-OUT': range.scte35Out,
    'SCTE35-IN': range.scte35In,
    'SCTE35-CMD': range.scte35Cmd,
  }
  for (const [name, section] of Object.entries(sections)) {
    if (section !== undefined) attributes.push(`${name}=0x${section.toString('hex').toUpperCase()}`)
  }
  return joinLines([`#EXT-X-DATERANGE:${attributes.join(',')}`])
}

function formatDate(ms: number): string {
  return new Date(ms).toISOString()
}

export function formatSegment(segment: PlaylistSegment): string {
  const lines = [
    `#EXT-X-PROGRAM-DATE-TIME:${formatDate(segment.programDateTimeMs)}`,
    ...(segment.parts ?? []).map(formatPart),
    `#EXTINF:${formatDuration(segment.durationSec)},`,
    segment.uri,
  ]
  if (segment.map !== undefined) lines.unshift(formatMap(segment.map))
  if (segment.gap) lines.unshift('#EXT-X-GAP')
  if (segment.discontinuity) lines.unshift('#EXT-X-DISCONTINUITY')
  return joinLines(lines)
}

/** EXT-X-SERVER-CONTROL and EXT-X-PART-INF. */
function formatPartControl(
  { partTargetSec, skipUntilSec }: LowLatencyTags,
  targetDurationSec: number,
): string[] {
  const targets = { targetSec: targetDurationSec }
  const control = [
    'CAN-BLOCK-RELOAD=YES',
    `PART-HOLD-BACK=${formatDuration(holdBackSec({ ...targets, partTargetSec }))}`,
    `HOLD-BACK=${holdBackSec(targets)}`,
  ]
  if (skipUntilSec !== undefined) control.push(`CAN-SKIP-UNTIL=${skipUntilSec}`)
  return [
    `#EXT-X-SERVER-CONTROL:${control.join(',')}`,
    `#EXT-X-PART-INF:PART-TARGET=${formatDuration(roundUpDuration(partTargetSec))}`,
  ]
}

function formatLiveEdge(tags: LowLatencyTags): string[] {
  const { openSegment, preloadHint, renditionReports } = tags
  const lines: string[] = []
  // Written before the first part too: hls.js expects the next segment in the timeline of the last tag (hls.js#7962).
  if (openSegment?.discontinuity !== false) lines.push('#EXT-X-DISCONTINUITY')
  if (openSegment !== undefined) {
    if (openSegment.map !== undefined) lines.push(formatMap(openSegment.map))
    // Before the first part too: where Shaka 5.2 guesses 1 ms more for the hinted part, it drops the rest of the GOP.
    lines.push(`#EXT-X-PROGRAM-DATE-TIME:${formatDate(openSegment.programDateTimeMs)}`)
    lines.push(...openSegment.parts.map(formatPart))
  }
  if (preloadHint !== undefined) {
    lines.push(`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${preloadHint}"`)
  }
  lines.push(...renditionReports.map(formatRenditionReport))
  return lines
}

function formatMap(uri: string): string {
  return `#EXT-X-MAP:URI="${uri}"`
}

function formatPart({ uri, durationSec, independent, gap }: PlaylistPart): string {
  const attributes = [`DURATION=${formatDuration(durationSec + PART_EXCESS_SEC)}`, `URI="${uri}"`]
  if (gap) attributes.push('GAP=YES')
  else if (independent) attributes.push('INDEPENDENT=YES')
  return `#EXT-X-PART:${attributes.join(',')}`
}

function formatRenditionReport({ uri, lastSequence, lastPart }: RenditionReport): string {
  const attributes = [`URI="${uri}"`, `LAST-MSN=${lastSequence}`]
  if (lastPart !== undefined) attributes.push(`LAST-PART=${lastPart}`)
  return `#EXT-X-RENDITION-REPORT:${attributes.join(',')}`
}

function formatDuration(sec: number): string {
  return sec.toFixed(DURATION_DECIMALS)
}

/** Rounds PART-TARGET up, so that no DURATION is longer. */
function roundUpDuration(sec: number): number {
  const scale = 10 ** DURATION_DECIMALS
  // The subtrahend is less than any part of a tick, and more than the error of the multiplication.
  return Math.ceil((sec + PART_EXCESS_SEC) * scale - 1e-6) / scale
}

function formatAudio(audio: AudioRendition): string {
  const { groupId, name, language, isDefault, isAutoselect, channels, characteristics, uri } = audio
  const attributes = ['TYPE=AUDIO', `GROUP-ID="${groupId}"`, `NAME="${name}"`]
  attributes.push(`LANGUAGE="${language}"`)
  attributes.push(`DEFAULT=${isDefault ? 'YES' : 'NO'}`)
  attributes.push(`AUTOSELECT=${isAutoselect ? 'YES' : 'NO'}`)
  if (channels !== undefined) attributes.push(`CHANNELS="${channels}"`)
  if (characteristics !== undefined) attributes.push(`CHARACTERISTICS="${characteristics}"`)
  if (uri !== undefined) attributes.push(`URI="${uri}"`)
  return `#EXT-X-MEDIA:${attributes.join(',')}`
}

function formatCaptions({ language }: ClosedCaptions): string {
  return `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",LANGUAGE="${language}",AUTOSELECT=YES,INSTREAM-ID="CC1"`
}

function formatVariant(
  variant: Variant,
  closedCaptions: MultivariantPlaylist['closedCaptions'],
): string[] {
  const { resolution, frameRate, videoRange } = variant
  const attributes = [
    `BANDWIDTH=${roundUpRate(variant.peakBps)}`,
    `AVERAGE-BANDWIDTH=${roundUpRate(variant.averageBps)}`,
  ]
  if (variant.codecs.length > 0) attributes.push(`CODECS="${variant.codecs.join(',')}"`)
  if (resolution !== undefined) {
    attributes.push(`RESOLUTION=${resolution.width}x${resolution.height}`)
  }
  if (frameRate !== undefined) attributes.push(`FRAME-RATE=${frameRate.toFixed(3)}`)
  if (videoRange !== undefined) attributes.push(`VIDEO-RANGE=${videoRange}`)
  if (variant.audioGroup !== undefined) attributes.push(`AUDIO="${variant.audioGroup}"`)
  // The same on all variants: if one variant has NONE, all must have NONE (RFC 8216bis 4.4.6.2).
  if (closedCaptions !== undefined) {
    attributes.push(`CLOSED-CAPTIONS=${closedCaptions === 'none' ? 'NONE' : '"cc"'}`)
  }
  return [`#EXT-X-STREAM-INF:${attributes.join(',')}`, variant.uri]
}

/** Two significant digits, so that the playlist and its ETag stay the same while measurements hardly change. */
function roundUpRate(bps: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(bps)) - 1)
  return Math.ceil(bps / step) * step
}

/**
 * Time at the end of the listed media, in milliseconds since 1970.
 *
 * @returns undefined for a playlist without EXT-X-PROGRAM-DATE-TIME
 */
export function endOfMedia(text: string): number | undefined {
  const dated = text.slice(text.lastIndexOf('#EXT-X-PROGRAM-DATE-TIME:'))
  const startMs = Date.parse(/^#EXT-X-PROGRAM-DATE-TIME:(.*)/.exec(dated)?.[1] ?? '')
  if (Number.isNaN(startMs)) return undefined
  const segments = [...dated.matchAll(/^#EXTINF:([\d.]+)/gm)]
  // The parts of a complete segment come before its EXTINF.
  const open = dated.slice(segments.at(-1)?.index ?? 0)
  const parts = open.matchAll(/^#EXT-X-PART:(?:.*,)?DURATION=([\d.]+)/gm)
  const durations = [...segments, ...parts].map(([, duration]) => Number(duration))
  return startMs + durations.reduce((sum, duration) => sum + duration, 0) * 1000
}
