/**
 * What playlists of Millrace keep beyond the rules of HLS, as rules for the judge of `millrace check`.
 *
 * @module
 */
import {
  isComplete,
  liveEdge,
  resolve,
  totalSec,
  type ParsedSegment,
  type ParsedPlaylist,
} from '../../src/check/playlist/media-playlist.ts'
import { findTag, findTags, unquoted, type Tag } from '../../src/check/playlist/tag-reader.ts'
import { fact } from '../../src/check/rules/evidence.ts'
import type { Evidence, Rule } from '../../src/check/rules/rule.ts'
import type { Subjects } from '../../src/check/rules/subjects.ts'
import { keptSegments } from '../../src/check/rules/updates.ts'

/** Rounding of PROGRAM-DATE-TIME and EXTINF. */
const ROUNDING_SEC = 0.002

/** Rounding of one printed duration. */
const PRINTED_SEC = 0.000_005

/** Excess of each printed DURATION over that of the part. */
const EXCESS_SEC = 0.000_01

/** Two frames: EXTINF of audio in CMAF is that of whole frames, dates are those of the video. */
const AUDIO_FRAMES_SEC = 0.048

/** Largest difference between dates and EXTINF: dates follow the wall clock, in steps, media the clock of the encoder. */
const MAX_STEP_SEC = 0.01

/** Number of segments with which a live playlist appears (RFC 8216bis 6.3.3: players start three before the end). */
const SEGMENTS_AT_START = 3
const SEGMENTS_AT_START_WITH_PARTS = 2

/** Max time between two segments, in target durations (RFC 8216bis 6.2.1). */
const MAX_WAIT = 1.5

export interface HouseRulesOptions {
  /** Whether every media playlist has the tags of low latency; default false. */
  readonly lowLatency?: boolean
  /** Whether versions come with their time; default false. */
  readonly isTimed?: boolean
  /** Whether the first version is the first one of a stream whose encoder is connected; default false. */
  readonly watchedFromStart?: boolean
}

/** @returns rules for one judge: some remember what was listed before */
export function houseRules(options: HouseRulesOptions = {}): readonly Rule[] {
  const { lowLatency = false, isTimed = false, watchedFromStart = false } = options
  return [
    ...OF_PLAYLIST,
    ...OF_UPDATE,
    ...OF_MULTIVARIANT,
    partNames(),
    ...(isTimed ? [pace()] : []),
    ...(lowLatency ? OF_LOW_LATENCY : []),
    ...(watchedFromStart ? [start()] : []),
  ]
}

/** @param broken  what is seen instead, at each place where the requirement is not kept */
function house<S extends 'playlist' | 'update' | 'multivariant' | 'reload'>(
  id: string,
  on: S,
  requirement: string,
  broken: (subject: Subjects[S]) => readonly string[],
): Rule {
  const check = (subject: Subjects[S]): Evidence[] => {
    const source = 'after' in subject ? subject.after : subject.playlist
    return broken(subject).map((seen) => [fact(source, requirement), fact(source, seen)])
  }
  const text = { clause: 'house rule', level: 'MUST', requirement, effects: {}, remedy: '' }
  return { id: `HOUSE_${id}`, ...text, on, check } as unknown as Rule
}

function isCmafAudio({ url }: ParsedPlaylist): boolean {
  return url.includes('/cmaf-audio-')
}

const OF_PLAYLIST = [
  house('HEAD', 'playlist', 'both sequence numbers are given, no type', ({ playlist }) => {
    const has = (name: string) => findTag(playlist, name) !== undefined
    return [
      ...(playlist.text.startsWith('#EXTM3U\n') ? [] : ['no #EXTM3U with a line feed']),
      ...(has('EXT-X-MEDIA-SEQUENCE') ? [] : ['no EXT-X-MEDIA-SEQUENCE']),
      ...(has('EXT-X-DISCONTINUITY-SEQUENCE') ? [] : ['no EXT-X-DISCONTINUITY-SEQUENCE']),
      ...(has('EXT-X-PLAYLIST-TYPE') ? ['EXT-X-PLAYLIST-TYPE'] : []),
    ]
  }),
  house('END', 'playlist', 'EXT-X-ENDLIST alone follows the last segment', ({ playlist }) => {
    const { ended, tags, segments } = playlist
    if (!ended) return []
    const lastLine = segments.at(-1)?.line ?? 0
    const behind = tags.filter(({ line }) => line > lastLine).map(({ name }) => name)
    return behind.join() === 'EXT-X-ENDLIST' ? [] : [`${behind.join()} behind line ${lastLine}`]
  }),
  house('DURATION', 'playlist', 'EXTINF is above 0', ({ playlist }) =>
    playlist.segments
      .filter((segment) => isComplete(segment) && !(segment.durationSec > 0))
      .map(({ uri, duration }) => `${uri} lasts ${duration} s`),
  ),
  house('DATE', 'playlist', 'each segment has a date, which EXTINF leads to', ({ playlist }) =>
    playlist.segments.flatMap((segment, index) => {
      if (segment.dateTimeMs === undefined) return [`${segment.sequence} has none`]
      const before = playlist.segments[index - 1]
      if (before?.dateTimeMs === undefined) return []
      const gapSec = (segment.dateTimeMs - before.dateTimeMs) / 1000 - before.durationSec
      const frameSec = isCmafAudio(playlist) ? AUDIO_FRAMES_SEC : 0
      const toleranceSec = ROUNDING_SEC + frameSec + MAX_STEP_SEC
      const isKept = gapSec >= -toleranceSec && (gapSec <= toleranceSec || segment.discontinuity)
      return isKept ? [] : [`${segment.sequence} starts ${gapSec} s after the end before it`]
    }),
  ),
  house('DATERANGE', 'playlist', 'date ranges have a strict form and one tag', ({ playlist }) => {
    const ranges = findTags(playlist, 'EXT-X-DATERANGE')
    const ids = ranges.map(({ attributes }) => attributes.get('ID'))
    return [
      ...(new Set(ids).size === ids.length ? [] : [`${ids.join()} has an ID twice`]),
      ...ranges.filter((range) => !isStrict(range)).map(({ value }) => value),
    ]
  }),
  house('PART_SUM', 'playlist', 'EXTINF is the sum of the parts', ({ playlist }) =>
    playlist.segments.flatMap((segment) => {
      const { parts, durationSec, uri } = segment
      if (parts.length === 0 || !isComplete(segment)) return []
      const sumSec = totalSec(parts) - parts.length * EXCESS_SEC
      const isSum = Math.abs(sumSec - durationSec) <= (parts.length + 1) * PRINTED_SEC
      return isSum ? [] : [`${uri} lasts ${durationSec} s, its parts ${sumSec} s`]
    }),
  ),
]

const OF_LOW_LATENCY = [
  house('CONTROL', 'playlist', 'the tags of low latency are complete', ({ playlist }) => {
    const { partTargetSec = 0, serverControl, ended } = playlist
    const hints = findTags(playlist, 'EXT-X-PRELOAD-HINT').length
    // None before a timeline: HINT_MISSING knows what came.
    const isRight = hints === 0 || (hints === 1 && !ended)
    return [
      ...(partTargetSec > 0 ? [] : ['no PART-TARGET']),
      ...(serverControl?.canBlockReload === true ? [] : ['no CAN-BLOCK-RELOAD']),
      ...(serverControl?.holdBackSec === undefined ? ['no HOLD-BACK'] : []),
      ...(isRight ? [] : [`${hints} hints`]),
    ]
  }),
]

const OF_UPDATE = [
  house('KEPT', 'update', 'segments keep their text and leave at the head', (update) => {
    const { before, after } = update
    const kept = keptSegments(update)
    const left = before.segments.length - Math.max(0, after.mediaSequence - before.mediaSequence)
    return [
      ...(kept.length >= left ? [] : [`${left - kept.length} left at the end`]),
      ...kept
        .filter(([old, now]) => !isSame(old, now))
        .map(([old, now]) => `${describe(old)} became ${describe(now)}`),
    ]
  }),
  house('WINDOW', 'update', 'three target durations remain', ({ before, after }) => {
    if (after.mediaSequence === before.mediaSequence || after.ended) return []
    const sumSec = totalSec(after.segments.filter(isComplete))
    return sumSec >= 3 * after.targetSec - ROUNDING_SEC ? [] : [`${sumSec} s remain`]
  }),
]

const OF_MULTIVARIANT = [
  house('VIDEO_RANGE', 'multivariant', 'VIDEO-RANGE of all if one is HDR', ({ playlist }) => {
    const ranges = playlist.variants
      .filter(({ resolution }) => resolution !== undefined)
      .map(({ videoRange }) => videoRange)
    const hasHdr = ranges.some((range) => range !== undefined && range !== 'SDR')
    return hasHdr && ranges.includes(undefined) ? [ranges.join('/')] : []
  }),
  // Players read it once: it would hold for later segments.
  house('INDEPENDENT', 'multivariant', 'media playlists alone promise it', ({ playlist }) =>
    playlist.independentSegments ? ['EXT-X-INDEPENDENT-SEGMENTS'] : [],
  ),
]

function pace(): Rule {
  const grown = new Map<string, { sequence: number; atMs: number }>()
  return house('PACE', 'reload', `a segment each ${MAX_WAIT} × TARGETDURATION`, (reload) => {
    const { playlist, reply } = reload
    const { mediaSequence, segments, targetSec, url } = playlist
    const sequence = mediaSequence + segments.filter(isComplete).length
    const atMs = reply.endedAtMs
    const known = grown.get(url) ?? { sequence, atMs }
    if (sequence > known.sequence || known.atMs === atMs) grown.set(url, { sequence, atMs })
    const waitedMs = sequence > known.sequence ? atMs - known.atMs : 0
    return waitedMs <= MAX_WAIT * 1000 * targetSec ? [] : [`one came after ${waitedMs} ms`]
  })
}

function partNames(): Rule {
  const known = new Map<string, string>()
  return house('PART_NAME', 'playlist', 'a part has one name, which no other gets', (it) =>
    it.playlist.segments.flatMap(({ sequence, parts }) =>
      parts.flatMap(({ url, uri, duration }, index) => {
        const now = `part ${index} of ${sequence}, ${duration} s`
        const before = known.get(url) ?? now
        known.set(url, now)
        return before === now ? [] : [`${uri} was ${before} and is ${now}`]
      }),
    ),
  )
}

function start(): Rule {
  const seen = new Set<string>()
  const requirement = `${SEGMENTS_AT_START} segments at first, ${SEGMENTS_AT_START_WITH_PARTS} with parts`
  return house('START', 'playlist', requirement, ({ playlist }) => {
    const { url, segments, ended, partTargetSec } = playlist
    const minSegments =
      partTargetSec === undefined ? SEGMENTS_AT_START : SEGMENTS_AT_START_WITH_PARTS
    const isLong = segments.filter(isComplete).length >= minSegments
    const isKept = seen.has(url) || isLong || ended
    seen.add(url)
    return isKept ? [] : [`the playlist appeared with ${segments.length} segments`]
  })
}

/**
 * Newest part of media playlists at one moment, by themselves and by their reports of each other.
 *
 * @returns what is not the same everywhere
 */
export function compareEdges(playlists: readonly ParsedPlaylist[]): readonly string[] {
  const edges = new Map(playlists.map((playlist) => [playlist.url, edgeOf(playlist)]))
  const [first] = edges.values()
  return playlists.flatMap((playlist) => {
    const { url, ended } = playlist
    if (ended) return []
    const reported = new Map(
      findTags(playlist, 'EXT-X-RENDITION-REPORT').map((tag) => {
        const { attributes } = tag
        const edge = `${attributes.get('LAST-MSN')}.${attributes.get('LAST-PART')}`
        return [resolve(unquoted(tag, 'URI') ?? '', url), edge]
      }),
    )
    const wrong = [...edges].filter(
      ([other, edge]) => other !== url && reported.get(other) !== edge,
    )
    return [
      ...(edges.get(url) === first ? [] : [`${url} is at ${edges.get(url)}, others at ${first}`]),
      ...wrong.map(([other, edge]) => `${url} reports ${other} at ${reported.get(other)}: ${edge}`),
    ]
  })
}

function edgeOf(playlist: ParsedPlaylist): string {
  const { sequence, part } = liveEdge(playlist)
  return `${sequence}.${part}`
}

/** Whether a segment has the URI, EXTINF and date that it had, as text, and all parts if it was open. */
function isSame(old: ParsedSegment, now: ParsedSegment): boolean {
  if (old.dateTime !== now.dateTime || (old.gap && !now.gap)) return false
  if (isComplete(old)) return old.uri === now.uri && old.duration === now.duration
  // Who reloads late finds no parts any more.
  const isDelisted = isComplete(now) && now.parts.length === 0
  return isDelisted || old.parts.every(({ uri }, index) => uri === now.parts[index]?.uri)
}

function describe({ sequence, uri, duration, dateTime, gap, parts }: ParsedSegment): string {
  return JSON.stringify({ sequence, uri, duration, dateTime, gap, parts: parts.length })
}

function isStrict({ attributes }: Tag): boolean {
  const date = /^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z"$/
  const allMatch = (name: RegExp, form: RegExp) =>
    [...attributes].every(([key, value]) => !name.test(key) || form.test(value))
  return (
    /^"[^"]+"$/.test(attributes.get('ID') ?? '') &&
    date.test(attributes.get('START-DATE') ?? '') &&
    allMatch(/^SCTE35-/, /^0x([0-9A-F]{2})+$/) &&
    allMatch(/DURATION$/, /^\d+(\.\d+)?$/)
  )
}
