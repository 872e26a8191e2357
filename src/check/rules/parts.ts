/**
 * Rules on EXT-X-PART (RFC 8216bis 4.4.4.9, 6.2.2, B.1), and on EXT-X-PRELOAD-HINT and what becomes of it (4.4.5.3, 6.2.6).
 *
 * @module
 */
import {
  hasDates,
  isComplete,
  isSameMap,
  type ParsedPart,
  type ParsedSegment,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import { discontinuityAfter, findTag, findTags } from '../playlist/tag-reader.ts'
import {
  degrades,
  fact,
  MAY_REFUSE,
  nameOf,
  namePart,
  seconds,
  stalls,
  stops,
  unless,
} from './evidence.ts'
import type { Rule } from './rule.ts'
import { keptSegments } from './updates.ts'

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
            `${namePart(old.sequence, at)} is ${describePart(old.parts[at]!)}`,
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
      return unless(part === undefined || hasDates(playlist) || playlist.ended, () => [
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
        // The oldest segment may have lost parts already; the last of a timeline may be cut off before any audio.
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

export const HINTS: readonly Rule[] = [
  {
    id: 'DISCONTINUITY_LATE',
    clause: 'hls.js#7962',
    level: 'SHOULD',
    requirement:
      'In low latency, a DISCONTINUITY is listed as soon as the segment before it is complete.',
    effects: { hlsjs: stops('Refuses the playlist: "discontinuity sequence mismatch".') },
    remedy: 'Write EXT-X-DISCONTINUITY in the same update that completes the segment before it.',
    on: 'update',
    check: ({ before, after }) => {
      const next = nextSegment(before, after)
      const isLate = before.partTargetSec !== undefined && next?.discontinuity === true
      return unless(!isLate || trailingDiscontinuity(before) !== undefined, () => [
        fact(before, `segment ${next!.sequence - 1} is complete`, before.segments.at(-1)),
        fact(after, `segment ${next!.sequence} has a DISCONTINUITY`, next),
      ])
    },
  },
  {
    id: 'DISCONTINUITY_WITHDRAWN',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A DISCONTINUITY at the end of the playlist stays before the next segment.',
    effects: { hlsjs: stops('Refuses the playlist: "discontinuity sequence mismatch".') },
    remedy: 'Keep the tag before the first part of the next segment.',
    on: 'update',
    check: ({ before, after }) => {
      const tag = trailingDiscontinuity(before)
      const next = nextSegment(before, after)
      return unless(tag === undefined || next === undefined || next.discontinuity, () => [
        fact(before, `#EXT-X-DISCONTINUITY behind segment ${next!.sequence - 1}`, tag),
        fact(after, `segment ${next!.sequence} has none`, next),
      ])
    },
  },
  {
    id: 'HINT_MISSING',
    clause: 'RFC 8216bis B.1',
    level: 'MUST',
    requirement:
      'A live playlist with parts hints the next part, unless that follows a DISCONTINUITY.',
    effects: { apple: degrades('May play at regular latency, as B.1 asks of clients.') },
    remedy: 'Write EXT-X-PRELOAD-HINT:TYPE=PART with the URI of the next part.',
    on: 'update',
    check: ({ before, after }) => {
      const next = nextPart(before, after)
      const begun = after.segments.find(({ parts }) => parts[0] === next)
      const isHinted = before.hints.length > 0 || begun?.discontinuity === true
      return unless(next === undefined || isHinted, () => [
        fact(before, 'there is no EXT-X-PRELOAD-HINT with TYPE=PART'),
        fact(after, `${next!.uri} came`, next),
      ])
    },
  },
  {
    id: 'HINT_AFTER_END',
    clause: 'RFC 8216bis 4.4.5.3',
    level: 'MUST',
    requirement: 'A playlist with EXT-X-ENDLIST has no EXT-X-PRELOAD-HINT.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Remove the hint with the last segment.',
    on: 'playlist',
    check: ({ playlist }) => {
      const hint = findTag(playlist, 'EXT-X-PRELOAD-HINT')
      return unless(!playlist.ended || hint === undefined, () => [
        fact(playlist, '#EXT-X-ENDLIST', findTag(playlist, 'EXT-X-ENDLIST')),
        fact(playlist, `#EXT-X-PRELOAD-HINT:${hint!.value}`, hint),
      ])
    },
  },
  {
    id: 'MAP_BEHIND_HINT',
    clause: 'RFC 8216bis 4.4.5.3',
    level: 'SHOULD',
    requirement: 'The EXT-X-MAP of a part is listed before its hint.',
    effects: { shaka: stops('Appends the hinted part with the init segment before it.') },
    remedy: 'Hint the first part of a timeline when its EXT-X-MAP is known, or not at all.',
    on: 'update',
    check: ({ before, after }) => {
      const [hint] = before.hints
      const next = nextSegment(before, after)
      const last = before.segments.at(-1)
      const isChanged = next?.map !== undefined && !isSameMap(last?.map, next.map)
      const isListed = findTags(before, 'EXT-X-MAP').some(({ line }) => line > (last?.line ?? 0))
      return unless(
        hint === undefined || !isChanged || isListed || next.parts[0]?.url !== hint.url,
        () => [
          fact(before, `${hint!.uri} is hinted`, hint),
          fact(after, `it follows another EXT-X-MAP, ${next!.map!.url}`, next),
        ],
      )
    },
  },
  {
    id: 'HINT_NOT_KEPT',
    clause: 'RFC 8216bis 4.4.5.3, 6.2.6',
    level: 'SHOULD',
    requirement: 'The part that is hinted becomes the next part, unless a DISCONTINUITY comes.',
    effects: {
      apple: degrades('Loads the hinted part in vain.'),
      shaka: stops('Asks for the hinted part, and ends in an error when the answer is 404.'),
    },
    remedy: 'Name parts before they exist, by a number that does not depend on their segment.',
    on: 'update',
    check: ({ before, after }) => {
      const [hint] = before.hints
      const next = hint && nextPart(before, after)
      // 6.2.6: it may be left out where the planned segmentation changes.
      const isReplanned = after.segments.some(
        ({ parts: [first], discontinuity }) =>
          first !== undefined && first === next && discontinuity,
      )
      return unless(next === undefined || next.url === hint!.url || isReplanned, () => [
        fact(before, `${hint!.uri} is hinted`, hint),
        fact(after, `${next!.uri} came`, next),
      ])
    },
  },
  {
    id: 'HINT_REPEATED',
    clause: 'RFC 8216bis 6.2.6',
    level: 'SHOULD',
    requirement: 'A playlist has at most one EXT-X-PRELOAD-HINT of each TYPE.',
    effects: { apple: degrades('Ignores all but the first (RFC 8216bis 6.3.8).') },
    remedy: 'Hint the next part alone.',
    on: 'playlist',
    check: ({ playlist: { hints }, playlist }) =>
      unless(hints.length <= 1, () => [
        fact(playlist, `${hints[0]!.uri} is hinted`, hints[0]),
        fact(playlist, `${hints[1]!.uri} is hinted as well`, hints[1]),
      ]),
  },
]

function isOther(part: ParsedPart, old: ParsedPart | undefined): boolean {
  return old !== undefined && (part.url !== old.url || part.durationSec !== old.durationSec)
}

function describePart({ uri, duration }: ParsedPart): string {
  return `${uri} of ${duration} s`
}

/** Segment that follows the last one of a version, if that is complete. */
function nextSegment(before: ParsedPlaylist, after: ParsedPlaylist): ParsedSegment | undefined {
  const last = before.segments.at(-1)
  if (last === undefined || !isComplete(last)) return undefined
  return after.segments.find(({ sequence }) => sequence === last.sequence + 1)
}

/** Part that follows the last one of a version; undefined if it is not known. */
function nextPart(before: ParsedPlaylist, after: ParsedPlaylist): ParsedPart | undefined {
  const last = before.segments.at(-1)
  if (last === undefined || isComplete(last)) return nextSegment(before, after)?.parts[0]
  const at = after.segments.findIndex(({ sequence }) => sequence === last.sequence)
  const now = after.segments[at]
  const isOver = now?.parts.length === last.parts.length && isComplete(now)
  return isOver ? after.segments[at + 1]?.parts[0] : now?.parts[last.parts.length]
}

/** EXT-X-DISCONTINUITY after the last segment. */
function trailingDiscontinuity(playlist: ParsedPlaylist) {
  return discontinuityAfter(playlist, playlist.segments.at(-1)?.line ?? 0)
}
