/**
 * Rules on EXT-X-PRELOAD-HINT, and on what becomes of it (RFC 8216bis 4.4.5.3, 6.2.6, B.1).
 *
 * @module
 */
import { isComplete, isSameMap } from '../playlist/media-playlist.ts'
import type { ListedPart, ListedSegment, MediaPlaylist } from '../playlist/media-playlist.ts'
import { discontinuityBehind, findTag, findTags } from '../playlist/tag-reader.ts'
import { degrades, fact, MAY_REFUSE, stops, unless } from './evidence.ts'
import type { Rule } from './rule.ts'

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
      const isHinted = before.hints.length > 0 || nextSegment(before, after)?.discontinuity === true
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
    requirement: 'The part that is hinted becomes the next part.',
    effects: {
      apple: degrades('Loads the hinted part in vain.'),
      shaka: stops('Asks for the hinted part, and ends in an error when the answer is 404.'),
    },
    remedy: 'Name parts before they exist, by a number that does not depend on their segment.',
    on: 'update',
    check: ({ before, after }) => {
      const [hint] = before.hints
      const next = hint && nextPart(before, after)
      return unless(next === undefined || next.url === hint!.url, () => [
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

/** Segment that began behind all that a version lists. */
function nextSegment(before: MediaPlaylist, after: MediaPlaylist): ListedSegment | undefined {
  const last = before.segments.at(-1)
  if (last === undefined || !isComplete(last)) return undefined
  return after.segments.find(({ sequence }) => sequence === last.sequence + 1)
}

/** Part that came next to all that a version lists; undefined if that is not known. */
function nextPart(before: MediaPlaylist, after: MediaPlaylist): ListedPart | undefined {
  const last = before.segments.at(-1)
  if (last === undefined || isComplete(last)) return nextSegment(before, after)?.parts[0]
  const at = after.segments.findIndex(({ sequence }) => sequence === last.sequence)
  const now = after.segments[at]
  const isOver = now?.parts.length === last.parts.length && isComplete(now)
  return isOver ? after.segments[at + 1]?.parts[0] : now?.parts[last.parts.length]
}

/** EXT-X-DISCONTINUITY behind the last segment. */
function trailingDiscontinuity(playlist: MediaPlaylist) {
  return discontinuityBehind(playlist, playlist.segments.at(-1)?.line ?? 0)
}
