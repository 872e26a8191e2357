/**
 * Formatting of playlists (RFC 8216bis 4).
 *
 * @module
 */
import type { DateRange } from '../date-range.ts'
import type {
  AudioRendition,
  ClosedCaptions,
  MediaPlaylist,
  MultivariantPlaylist,
  PlaylistSegment,
  Variant,
} from './playlist.ts'

/** Lowest version that permits a decimal EXTINF (RFC 8216bis 8); no other tag in use needs a higher one. */
const MEDIA_PLAYLIST_VERSION = 3

/** Decimals of a duration in seconds: 10 µs, less than a tick of 90 kHz. */
const DURATION_DECIMALS = 5

export function formatMediaPlaylist(playlist: MediaPlaylist): string {
  const lines = [
    '#EXTM3U',
    `#EXT-X-VERSION:${MEDIA_PLAYLIST_VERSION}`,
    `#EXT-X-TARGETDURATION:${playlist.targetDurationSec}`,
    `#EXT-X-MEDIA-SEQUENCE:${playlist.mediaSequence}`,
    `#EXT-X-DISCONTINUITY-SEQUENCE:${playlist.discontinuitySequence}`,
  ]
  if (playlist.independentSegments) lines.push('#EXT-X-INDEPENDENT-SEGMENTS')
  lines.push(...playlist.dateRanges.map(formatDateRange))
  for (const segment of playlist.segments) lines.push(...formatSegment(segment))
  if (playlist.ended) lines.push('#EXT-X-ENDLIST')
  return `${lines.join('\n')}\n`
}

export function formatMultivariantPlaylist(playlist: MultivariantPlaylist): string {
  // No EXT-X-INDEPENDENT-SEGMENTS: it would hold for all later segments too (RFC 8216bis 4.4.2.1).
  const lines = ['#EXTM3U']
  lines.push(...playlist.audios.map(formatAudio))
  const { closedCaptions } = playlist
  if (typeof closedCaptions === 'object') lines.push(formatCaptions(closedCaptions))
  lines.push(...playlist.variants.flatMap((variant) => formatVariant(variant, closedCaptions)))
  return `${lines.join('\n')}\n`
}

function formatDateRange(range: DateRange): string {
  const attributes = [`ID="${range.id}"`, `START-DATE="${formatDate(range.startMs)}"`]
  const seconds = { DURATION: range.durationSec, 'PLANNED-DURATION': range.plannedDurationSec }
  for (const [name, sec] of Object.entries(seconds)) {
    if (sec !== undefined) attributes.push(`${name}=${sec.toFixed(DURATION_DECIMALS)}`)
  }
  const sections = {
    'SCTE35-OUT': range.scte35Out,
    'SCTE35-IN': range.scte35In,
    'SCTE35-CMD': range.scte35Cmd,
  }
  for (const [name, section] of Object.entries(sections)) {
    if (section !== undefined) attributes.push(`${name}=0x${section.toString('hex').toUpperCase()}`)
  }
  return `#EXT-X-DATERANGE:${attributes.join(',')}`
}

function formatDate(ms: number): string {
  return new Date(ms).toISOString()
}

function formatSegment(segment: PlaylistSegment): string[] {
  const lines = [
    `#EXT-X-PROGRAM-DATE-TIME:${formatDate(segment.programDateTimeMs)}`,
    `#EXTINF:${segment.durationSec.toFixed(DURATION_DECIMALS)},`,
    segment.uri,
  ]
  if (segment.gap) lines.unshift('#EXT-X-GAP')
  if (segment.discontinuity) lines.unshift('#EXT-X-DISCONTINUITY')
  return lines
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
