/**
 * Rules on the parts of a media playlist (RFC 8216bis 4.4.4.9, 6.2.2, B.1).
 *
 * @module
 */
import { isComplete, type ListedPart } from '../playlist/media-playlist.ts'
import { findTag } from '../playlist/tag-reader.ts'
import { degrades, fact, MAY_REFUSE, nameOf, seconds, stalls, stops, unless } from './evidence.ts'
import type { Rule } from './rule.ts'
import { keptSegments } from './timeline.ts'

/** Distance from the end up to which parts are listed, in target durations (6.2.2). */
const PART_WINDOW = 3

/** Rounding of sums of durations. */
const ROUNDING_SEC = 0.001

/** Tags that apply to the first part of a segment as well (4.4.4.9). */
const TAGS_OF_FIRST_PART = /^EXT-X-(DISCONTINUITY|KEY|MAP|PROGRAM-DATE-TIME)$/

export const LOW_LATENCY: readonly Rule[] = [
  {
    id: 'PART_CHANGED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A listed part keeps its place, URI and duration.',
    effects: { hlsjs: degrades('Keeps what it loaded in that place (level-helper.ts of hls.js).') },
    remedy: 'Append parts only, and never name two parts alike.',
    on: 'update',
    check: (update) =>
      keptSegments(update).flatMap(([old, now]) => {
        const at = now.parts.findIndex((part, index) => isOther(part, old.parts[index]))
        return unless(at < 0, () => [
          fact(
            update.before,
            `part ${at} of segment ${old.sequence} is ${describePart(old.parts[at]!)}`,
            old.parts[at],
          ),
          fact(update.after, `it is ${describePart(now.parts[at]!)}`, now.parts[at]),
        ])
      }),
  },
  {
    id: 'PARTS_OUT_OF_ORDER',
    clause: 'RFC 8216bis 6.2.2',
    level: 'MUST',
    requirement:
      'Parts are removed in the order in which they are listed, and not from a segment that is not complete.',
    effects: { hlsjs: stalls('Counts parts by their place, and asks for a wrong one.') },
    remedy: 'Remove the parts of a whole segment at once, oldest first.',
    on: 'update',
    check: (update) => {
      const oldestKept = update.after.segments.find(({ parts }) => parts.length > 0)
      return keptSegments(update).flatMap(([old, now]) => {
        const isOlderKept = oldestKept !== undefined && oldestKept.sequence < old.sequence
        const isLess = now.parts.length < old.parts.length
        return unless(
          !isLess || (now.parts.length === 0 && !isOlderKept && isComplete(now)),
          () => [
            fact(update.before, `segment ${old.sequence} has ${old.parts.length} parts`, old),
            fact(update.after, `it has ${now.parts.length}`, now),
          ],
        )
      })
    },
  },
  {
    id: 'PART_BEFORE_ITS_TAGS',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement:
      'DISCONTINUITY, KEY, MAP and PROGRAM-DATE-TIME of a segment precede its first part.',
    effects: {
      apple: MAY_REFUSE,
      hlsjs: stops('Applies the tag too late, to the parts behind it.'),
    },
    remedy: 'Write these tags before the first EXT-X-PART of the segment.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments.flatMap(({ parts: [part], tags, sequence }) => {
        const late =
          part && tags.find(({ name, line }) => TAGS_OF_FIRST_PART.test(name) && line > part.line)
        return unless(late === undefined, () => [
          fact(playlist, `first part of segment ${sequence}`, part),
          fact(playlist, `#${late!.name} comes later`, late),
        ])
      }),
  },
  {
    id: 'GAP_PARTS',
    clause: 'RFC 8216bis 6.2.1, 4.4.4.9',
    level: 'MUST',
    requirement:
      'All parts of a segment with EXT-X-GAP have GAP=YES, and no part with GAP=YES is INDEPENDENT.',
    effects: { hlsjs: stalls('Asks for parts that are not there.') },
    remedy: 'Mark each part without media with GAP=YES alone.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments.flatMap((segment) => {
        const part = segment.parts.find(({ gap, independent }) => (gap ? independent : segment.gap))
        return unless(part === undefined, () => [
          fact(playlist, `${segment.gap ? nameOf(segment) : part!.uri} is a gap`, segment),
          fact(playlist, `${part!.uri} is ${part!.gap ? 'INDEPENDENT' : 'no gap'}`, part),
        ])
      }),
  },
  {
    id: 'LOW_LATENCY_WITHOUT_DATES',
    clause: 'RFC 8216bis B.1',
    level: 'MUST',
    requirement: 'Media playlists with parts have EXT-X-PROGRAM-DATE-TIME.',
    effects: { apple: degrades('May play at regular latency, as B.1 asks of clients.') },
    remedy: 'Write EXT-X-PROGRAM-DATE-TIME.',
    on: 'playlist',
    check: ({ playlist }) => {
      const part = findTag(playlist, 'EXT-X-PART')
      const isDated = playlist.segments.some(({ dateTime }) => dateTime !== undefined)
      return unless(part === undefined || isDated || playlist.ended, () => [
        fact(playlist, 'the playlist has parts', part),
        fact(playlist, 'it has no EXT-X-PROGRAM-DATE-TIME'),
      ])
    },
  },
  {
    id: 'INDEPENDENT_MISSING',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'SHOULD',
    requirement: 'Parts with an independent frame are INDEPENDENT: at least one of each segment.',
    effects: { hlsjs: degrades('Joins and switches later: it starts at INDEPENDENT parts.') },
    remedy:
      'Write INDEPENDENT=YES for each part with a key frame, and set a key frame in each segment.',
    on: 'playlist',
    check: ({ playlist }) => {
      const first = playlist.segments.find(({ parts }) => parts.length > 0)
      return playlist.segments.flatMap((segment, index) => {
        const { parts } = segment
        // Of the oldest, parts may have left already; the last of a timeline may be cut off before audio has come.
        const isLast = playlist.segments[index + 1]?.discontinuity !== false
        if (segment === first || isLast || parts.length === 0) return []
        return unless(
          parts.some(({ independent, gap }) => independent || gap),
          () => [
            fact(playlist, `segment ${segment.sequence} has ${parts.length} parts`, segment),
            fact(playlist, 'none of them is INDEPENDENT', parts[0]),
          ],
        )
      })
    },
  },
  {
    id: 'PARTS_TOO_LONG_LISTED',
    clause: 'RFC 8216bis 6.2.2',
    level: 'SHOULD',
    requirement: 'Parts more than 3 × TARGETDURATION from the end are removed.',
    effects: {},
    remedy: 'Remove the parts of segments that end 3 × TARGETDURATION before the end.',
    on: 'playlist',
    check: ({ playlist }) => {
      let laterSec = 0
      return playlist.segments.toReversed().flatMap((segment) => {
        const distanceSec = laterSec
        laterSec += segment.durationSec
        const isFar = distanceSec > PART_WINDOW * playlist.targetSec + ROUNDING_SEC
        return unless(!isFar || segment.parts.length === 0, () => [
          fact(
            playlist,
            `segment ${segment.sequence} ends ${seconds(distanceSec)} before the end`,
            segment,
          ),
          fact(playlist, `it still has ${segment.parts.length} parts`, segment.parts[0]),
        ])
      })
    },
  },
  {
    id: 'BLOCKING_RELOAD_MISSING',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'SHOULD',
    requirement: 'A server with parts offers Blocking Playlist Reload.',
    effects: {
      apple: degrades('Polls for parts, with more latency.'),
      hlsjs: degrades('Polls for parts, with more latency.'),
    },
    remedy: 'Hold requests with _HLS_msn, and write CAN-BLOCK-RELOAD=YES.',
    on: 'playlist',
    check: ({ playlist }) => {
      const part = findTag(playlist, 'EXT-X-PART')
      const isOffered = playlist.serverControl?.canBlockReload === true
      return unless(part === undefined || playlist.ended || isOffered, () => [
        fact(playlist, 'the playlist has parts', part),
        fact(playlist, 'there is no CAN-BLOCK-RELOAD=YES', playlist.serverControl),
      ])
    },
  },
]

function isOther(part: ListedPart, old: ListedPart | undefined): boolean {
  return old !== undefined && (part.url !== old.url || part.durationSec !== old.durationSec)
}

function describePart({ uri, duration }: ListedPart): string {
  return `${uri} of ${duration} s`
}
