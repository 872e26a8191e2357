/**
 * Rules on EXT-X-PROGRAM-DATE-TIME and on date ranges over versions and renditions.
 *
 * @module
 */
import {
  hasDates,
  isComplete,
  type ParsedSegment,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import { findTag, findTags, pairsOf, unquoted, type Tag } from '../playlist/tag-reader.ts'
import { degrades, fact, groupBy, nameOf, seconds, unless } from './evidence.ts'
import type { Evidence, Rule } from './rule.ts'

/** Deviation of dates from the sum of EXTINF: dates follow a wall clock, media the clock of the encoder. */
const MAX_JITTER_SEC = 0.25
const MAX_SLEW = 0.001

/** Rounding of an EXTINF without decimals. */
const INTEGER_ROUNDING_SEC = 0.5

/** Overlap of dates that 6.2.1 permits. */
const MAX_OVERLAP_SEC = 1

/** Deviation of dates from the wall clock; a stream on its way may be late, and no frame is early. */
const MAX_AHEAD_MS = 2000
const MAX_BEHIND_MS = 600_000

/** Fraction of a second that a Date header may lack, which has whole seconds (RFC 9110 5.6.7). */
const MAX_FRACTION_MS = 999

/** Disagreement of the server's clock with ours, above which neither is trusted. */
const MAX_CLOCK_ERROR_MS = 60_000

/** Distance of segment borders of two renditions: audio is cut at its own frames. */
const MAX_BORDER_SEC = 0.25

/** Segments with equal durations, above which two renditions are taken to be cut alike. */
const MIN_ALIKE = 3

export const DATES: readonly Rule[] = [
  {
    id: 'DATES_OVERLAP',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'The dates of a segment overlap those before it by less than a second.',
    effects: { hlsjs: degrades('Seeks and aligns renditions by ambiguous dates.') },
    remedy: 'Take dates from one clock that never goes back.',
    on: 'playlist',
    check: ({ playlist }) =>
      datedPairs(playlist).flatMap(({ before, after, differenceSec }) =>
        unless(!(differenceSec <= -MAX_OVERLAP_SEC), () => describePair(playlist, before, after)),
      ),
  },
  {
    id: 'DATES_OF_RENDITIONS_DIFFER',
    clause: 'RFC 8216bis 6.2.4',
    level: 'MUST',
    requirement: 'If one media playlist has dates, all have them, and the same for the same media.',
    effects: {
      apple: degrades('Switches renditions at wrong places.'),
      hlsjs: degrades('Aligns renditions by wrong dates.'),
    },
    remedy: 'Date all renditions from one clock.',
    on: 'renditions',
    check: ({ playlists }) => {
      const listed = playlists.filter(({ segments }) => segments.length > 0)
      const dated = listed.find(hasDates)
      if (dated === undefined) return []
      return listed.flatMap((other): readonly Evidence[] => {
        if (!hasDates(other)) {
          return [[fact(dated, 'it has dates', dated.segments[0]), fact(other, 'it has none')]]
        }
        const apart = other === dated ? undefined : findApart(dated, other)
        if (apart === undefined) return []
        return [[describeDate(dated, apart[0]), describeDate(other, apart[1])]]
      })
    },
  },
  {
    id: 'DATERANGE_REMOVED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'EXT-X-DATERANGE stays while a date in its range maps to a listed segment.',
    effects: { apple: degrades('Loses the date range.') },
    remedy: 'Remove a date range only when the segments that it covers have left the playlist.',
    on: 'update',
    check: ({ before, after }) => {
      const kept = dateRangesOf(after)
      const [oldest] = after.segments
      const isDelta = findTag(after, 'EXT-X-SKIP') !== undefined
      if (oldest?.dateTimeMs === undefined || isDelta) return []
      return [...dateRangesOf(before)].flatMap(([id, tags]) => {
        const isOver = endOf(tags) <= oldest.dateTimeMs!
        return unless(kept.has(id) || isOver, () => [
          fact(before, `date range ${id}`, tags[0]),
          fact(after, `it is gone, and segment ${oldest.sequence} is listed`, oldest),
        ])
      })
    },
  },
  {
    id: 'DATERANGE_CHANGED',
    clause: 'RFC 8216bis 4.4.5.1',
    level: 'MUST',
    requirement: 'A date range keeps its attributes; it may get others.',
    effects: { hlsjs: degrades('Keeps the first value.') },
    remedy: 'Use a new ID for another date range, and repeat all attributes of the first tag.',
    on: 'update',
    check: ({ before, after }) => {
      const kept = dateRangesOf(after)
      return [...dateRangesOf(before)].flatMap(([id, tags]) => {
        const now = kept.get(id)
        if (now === undefined) return []
        const values = new Set(now.flatMap(pairsOf))
        return tags.flatMap((tag) => {
          const lost = pairsOf(tag).find((each) => !values.has(each))
          return unless(lost === undefined, () => [
            fact(before, `${lost} (date range ${id})`, tag),
            fact(after, now[0].value, now[0]),
          ])
        })
      })
    },
  },
  {
    id: 'DATE_MISSES_EXTINF',
    clause: 'RFC 8216bis 4.4.4.6',
    level: 'SHOULD',
    requirement: 'Without a DISCONTINUITY, dates advance by EXTINF.',
    effects: { hlsjs: degrades('Seeks by date to a wrong place.') },
    remedy:
      'Date segments by the timestamps of their media; mark missing media with a DISCONTINUITY.',
    on: 'playlist',
    check: ({ playlist }) =>
      datedPairs(playlist).flatMap(
        ({ before, after, mediaSec, differenceSec, isMarked, isInteger }) => {
          const maxSec =
            MAX_JITTER_SEC + MAX_SLEW * mediaSec + (isInteger ? INTEGER_ROUNDING_SEC : 0)
          const isOverlap = differenceSec <= -MAX_OVERLAP_SEC
          return unless(isMarked || isOverlap || !(Math.abs(differenceSec) > maxSec), () =>
            describePair(playlist, before, after),
          )
        },
      ),
  },
  {
    id: 'DATE_MISSING',
    clause: 'RFC 8216bis 6.2.1',
    level: 'SHOULD',
    requirement: 'In a playlist with dates, each segment with a DISCONTINUITY has one.',
    effects: { hlsjs: degrades('Guesses the date of the timeline.') },
    remedy: 'Write EXT-X-PROGRAM-DATE-TIME beside each EXT-X-DISCONTINUITY.',
    on: 'playlist',
    check: ({ playlist }) =>
      hasDates(playlist)
        ? playlist.segments.flatMap((segment) =>
            unless(!segment.discontinuity || segment.dateTime !== undefined, () => [
              fact(playlist, `${nameOf(segment)} has a DISCONTINUITY`, segment),
              fact(playlist, 'it has no EXT-X-PROGRAM-DATE-TIME'),
            ]),
          )
        : [],
  },
  {
    id: 'DATE_OFF_CLOCK',
    clause: 'RFC 8216bis 4.4.4.6',
    level: 'SHOULD',
    requirement:
      'Dates tell when the media was made: the newest is near the time of the reply, and not after it.',
    effects: { hlsjs: degrades('Measures a wrong latency.') },
    remedy: 'Synchronize the clock of the server, and take dates from it.',
    on: 'reload',
    check: ({ playlist, before, reply }) => {
      const last = playlist.segments.findLast(isComplete)
      const isKnown = last?.sequence === before?.segments.findLast(isComplete)?.sequence
      if (last?.dateTimeMs === undefined || isKnown || playlist.ended) return []
      const { date } = reply.headers
      const nowMs = date === undefined ? reply.endedAtMs : Date.parse(date) + MAX_FRACTION_MS
      if (!(Math.abs(nowMs - reply.endedAtMs) <= MAX_CLOCK_ERROR_MS)) return []
      const behindMs = nowMs - last.dateTimeMs - last.durationSec * 1000
      return unless(!(behindMs < -MAX_AHEAD_MS || behindMs > MAX_BEHIND_MS), () => [
        fact(playlist, `the reply is of ${new Date(nowMs).toISOString()}`),
        describeDate(playlist, last),
      ])
    },
  },
]

/** Segments with a date, each with the one with a date before it. */
function datedPairs({ segments }: ParsedPlaylist) {
  const pairs: {
    before: ParsedSegment
    after: ParsedSegment
    /** Sum of EXTINF from the one to the other. */
    mediaSec: number
    /** Advance of the date beyond that. */
    differenceSec: number
    isMarked: boolean
    isInteger: boolean
  }[] = []
  let before: ParsedSegment | undefined
  let mediaSec = 0
  let isMarked = false
  let isInteger = false
  for (const segment of segments) {
    isMarked ||= segment.discontinuity
    const { dateTimeMs } = segment
    if (dateTimeMs !== undefined && !Number.isNaN(dateTimeMs)) {
      if (before !== undefined) {
        const differenceSec = (dateTimeMs - before.dateTimeMs!) / 1000 - mediaSec
        pairs.push({ before, after: segment, mediaSec, differenceSec, isMarked, isInteger })
      }
      before = segment
      mediaSec = 0
      isMarked = false
      isInteger = false
    }
    mediaSec += segment.durationSec
    isInteger ||= !segment.duration.includes('.')
  }
  return pairs
}

function describePair(
  playlist: ParsedPlaylist,
  before: ParsedSegment,
  after: ParsedSegment,
): Evidence {
  const { dateTime, durationSec } = before
  return [
    fact(
      playlist,
      `segment ${before.sequence} is of ${dateTime} and lasts ${seconds(durationSec)}`,
      before,
    ),
    describeDate(playlist, after),
  ]
}

function describeDate(playlist: ParsedPlaylist, segment: ParsedSegment) {
  return fact(playlist, `segment ${segment.sequence} is of ${segment.dateTime}`, segment)
}

/**
 * Segments of two renditions that are cut alike, with dates apart. Their sequence numbers may differ, so only
 * dates between two borders tell.
 */
function findApart(
  one: ParsedPlaylist,
  other: ParsedPlaylist,
): readonly [ParsedSegment, ParsedSegment] | undefined {
  const first = other.segments[0]?.sequence ?? 0
  const pairs = one.segments.flatMap((segment) => {
    const match = other.segments[segment.sequence - first]
    const isBoth = match !== undefined && isComplete(segment) && isComplete(match)
    return isBoth ? [[segment, match] as const] : []
  })
  const isAlike =
    pairs.length >= MIN_ALIKE &&
    pairs.every(
      ([a, b]) => a.duration === b.duration && a.discontinuitySequence === b.discontinuitySequence,
    )
  return isAlike
    ? pairs.find(([a, b]) => {
        const apartSec = Math.abs((a.dateTimeMs ?? NaN) - (b.dateTimeMs ?? NaN)) / 1000
        return apartSec > MAX_BORDER_SEC && apartSec < a.durationSec - MAX_BORDER_SEC
      })
    : undefined
}

/** Tags of date ranges by their IDs. */
function dateRangesOf(playlist: ParsedPlaylist) {
  return groupBy(findTags(playlist, 'EXT-X-DATERANGE'), ({ attributes }) => attributes.get('ID'))
}

/** End of a date range, in milliseconds since 1970; infinite if it is not known. */
function endOf(tags: readonly Tag[]): number {
  const find = (name: string) =>
    tags.map((tag) => unquoted(tag, name)).find((it) => it !== undefined)
  const [end, start, duration] = ['END-DATE', 'START-DATE', 'DURATION'].map(find)
  if (end !== undefined) return Date.parse(end)
  return duration === undefined ? Infinity : Date.parse(start ?? '') + Number(duration) * 1000
}
