/**
 * Media playlists as another parser reads them: text that two parsers read in two ways is ambiguous to players too.
 *
 * @module
 */
import { Parser, type TheirSegment } from 'm3u8-parser'
import { isComplete, type ParsedSegment, type ParsedPlaylist } from '../playlist/media-playlist.ts'
import { findTag } from '../playlist/tag-reader.ts'
import { degrades, fact } from './evidence.ts'
import type { Evidence, RuleOn } from './rule.ts'

/** Size up to which a playlist is read twice, and its longest line: m3u8-parser takes quadratic time for a hostile line. */
const MAX_CHARACTERS = 262_144
const MAX_LINE_CHARACTERS = 2048

/** Rounding of decimal numbers. */
const ROUNDING_SEC = 1e-6

/** One value by both parsers. */
interface Reading {
  readonly name: string
  readonly ours: number | boolean
  readonly theirs: number | boolean | undefined
  readonly line?: number | undefined
}

export const SECOND_OPINION: RuleOn<'playlist'> = {
  id: 'SECOND_OPINION',
  clause: 'RFC 8216bis 4.1',
  level: 'SHOULD',
  requirement:
    'm3u8-parser, the parser of video.js, reads the same segments, parts and durations from the playlist.',
  effects: { videojs: degrades('Plays the segments, parts and durations that its parser reads.') },
  remedy: 'Write tags to the letter, without whitespace around them.',
  on: 'playlist',
  check: ({ playlist }) => {
    if (!isComparable(playlist)) return []
    const readings = readTwice(playlist)
    if (typeof readings === 'string') return [contradict(playlist, 'a playlist', readings)]
    const differing = readings.find(({ ours, theirs }) => !isEqual(ours, theirs))
    if (differing === undefined) return []
    const { name, ours, theirs, line } = differing
    return [contradict(playlist, `${name}: ${ours}`, `${name}: ${theirs}`, line)]
  },
}

/** Whether both parsers support the playlist, and its text is not too large. */
function isComparable(playlist: ParsedPlaylist): boolean {
  const { text, tags } = playlist
  // A delta update was merged with a playlist that m3u8-parser does not know, and variables have values elsewhere.
  const isWhole = !tags.some(({ name }) => name === 'EXT-X-SKIP' || name === 'EXT-X-DEFINE')
  if (!isWhole || text.length > MAX_CHARACTERS) return false
  return !text.split('\n').some((line) => line.length > MAX_LINE_CHARACTERS)
}

/** @returns readings in order of their weight; the message if m3u8-parser refuses the playlist */
function readTwice(playlist: ParsedPlaylist): readonly Reading[] | string {
  const parser = new Parser()
  let refusal: string | undefined
  parser.on('error', ({ message }) => (refusal ??= message))
  try {
    parser.push(playlist.text)
    parser.end()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  if (refusal !== undefined) return refusal
  const { manifest } = parser
  const { segments: theirs = [], preloadSegment } = manifest
  const complete = playlist.segments.filter(isComplete)
  const open = playlist.segments.find((segment) => !isComplete(segment))
  const line = findTag(playlist, 'EXT-X-TARGETDURATION')?.line
  // A fraction is the subject of another rule.
  const targetSec = Number.isInteger(playlist.targetSec) ? playlist.targetSec : Number.NaN
  return [
    { name: 'number of segments', ours: complete.length, theirs: theirs.length },
    { name: 'media sequence number', ours: playlist.mediaSequence, theirs: manifest.mediaSequence },
    { name: 'end list', ours: playlist.ended, theirs: manifest.endList ?? false },
    { name: 'target duration', line, ours: targetSec, theirs: manifest.targetDuration },
    ...complete.flatMap((segment, index) => readSegmentTwice(segment, theirs[index])),
    ...(open === undefined ? [] : readPartsTwice(open, preloadSegment?.parts)),
  ]
}

function readSegmentTwice(
  segment: ParsedSegment,
  other: TheirSegment | undefined,
): readonly Reading[] {
  const { sequence, line, durationSec, discontinuity } = segment
  // m3u8-parser replaces an EXTINF of 0.
  const otherSec = durationSec === 0 ? 0 : other?.duration
  const isOther = other?.discontinuity ?? false
  return [
    { name: `DISCONTINUITY of segment ${sequence}`, line, ours: discontinuity, theirs: isOther },
    { name: `EXTINF of segment ${sequence}`, line, ours: durationSec, theirs: otherSec },
    ...readPartsTwice(segment, other?.parts),
  ]
}

function readPartsTwice(
  { sequence, line, parts }: ParsedSegment,
  others: TheirSegment['parts'] = [],
): readonly Reading[] {
  const name = `number of parts of segment ${sequence}`
  return [
    { name, line, ours: parts.length, theirs: others.length },
    ...parts.map((part, index) => {
      const [ours, theirs] = [part.durationSec, others[index]?.duration]
      return { name: `DURATION of ${part.uri}`, line: part.line, ours, theirs }
    }),
  ]
}

/** Whether both parsers agree; NaN, which is the subject of another rule, agrees with every number. */
function isEqual(ours: Reading['ours'], theirs: Reading['theirs']): boolean {
  if (typeof ours === 'boolean') return ours === theirs
  return Number.isNaN(ours) || Math.abs(ours - Number(theirs)) <= ROUNDING_SEC
}

function contradict(
  playlist: ParsedPlaylist,
  ours: string,
  theirs: string,
  line?: number,
): Evidence {
  const place = line === undefined ? undefined : { line }
  return [
    fact(playlist, `as RFC 8216bis has it: ${ours}`, place),
    fact(playlist, `as m3u8-parser reads it: ${theirs}`, place),
  ]
}
