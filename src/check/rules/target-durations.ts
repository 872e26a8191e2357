/**
 * Rules on EXT-X-TARGETDURATION and PART-TARGET, and on what they bound.
 *
 * @module
 */
import { isComplete, totalSec, type MediaPlaylist } from '../playlist/media-playlist.ts'
import { findTag } from '../playlist/tag-reader.ts'
import { fact, MAY_REFUSE, nameOf, seconds, stalls, stops, unless } from './evidence.ts'
import type { Rule } from './rule.ts'
import { changed, describePartTarget, describeTarget, different, ROUNDING_SEC } from './values.ts'

/** Shortest part that is not exempt, in PART-TARGET (4.4.4.9). */
const MIN_PART = 0.85

/** Deviation of the sum of the parts from EXTINF: a frame at 24 frames per second. */
const MAX_FRAME_SEC = 0.042

/** Rounding of the EXTINF of a whole playlist. */
const WINDOW_ROUNDING_SEC = 0.01

export const TARGET_DURATIONS: readonly Rule[] = [
  {
    id: 'PART_OVER_TARGET',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement: 'No part is longer than PART-TARGET.',
    effects: { apple: stops('Refuses the playlist (error -12642).') },
    remedy:
      'Close each part before the frame that would carry it past PART-TARGET, or raise PART-TARGET.',
    on: 'playlist',
    check: ({ playlist }) =>
      partsOf(playlist).flatMap(({ part, name }) =>
        unless(!(part.durationSec > (playlist.partTargetSec ?? Infinity) + ROUNDING_SEC), () => [
          describePartTarget(playlist),
          fact(playlist, `${name} lasts ${part.duration} s`, part),
        ]),
      ),
  },
  {
    id: 'PART_TARGET_CHANGED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'PART-TARGET never changes.',
    effects: { apple: stops('Refuses the playlist (error -12642).') },
    remedy: 'Fix PART-TARGET when the stream starts; keep it when the encoder reconnects.',
    on: 'update',
    check: (update) => changed(update, ({ partTargetSec }) => partTargetSec, describePartTarget),
  },
  {
    id: 'TARGETDURATION_CHANGED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'EXT-X-TARGETDURATION never changes.',
    effects: { apple: stops('Ends in an error (gohlslib#187, mediamtx#3945).') },
    remedy: 'Choose a target duration that each segment keeps, and cut longer ones.',
    on: 'update',
    check: (update) => changed(update, ({ targetSec }) => targetSec, describeTarget),
  },
  {
    id: 'SEGMENT_OVER_TARGET',
    clause: 'RFC 8216bis 4.4.3.1',
    level: 'MUST',
    requirement: 'EXTINF, rounded to the nearest second, is at most EXT-X-TARGETDURATION.',
    effects: { apple: stalls('Playback stalls or ends in an error (RFC 8216bis 4.4.3.1).') },
    remedy:
      'Set a fixed key frame interval that divides the segment duration, or raise the target duration.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments
        .filter(isComplete)
        .flatMap((segment) =>
          unless(!(Math.round(segment.durationSec) > playlist.targetSec), () => [
            describeTarget(playlist),
            fact(playlist, `${nameOf(segment)} lasts ${segment.duration} s`, segment),
          ]),
        ),
  },
  {
    id: 'TARGETDURATIONS_DIFFER',
    clause: 'RFC 8216bis 6.2.4',
    level: 'MUST',
    requirement: 'All media playlists have the same EXT-X-TARGETDURATION.',
    effects: {},
    remedy: 'Use one target duration for all renditions.',
    on: 'renditions',
    check: ({ multivariant, playlists }) => {
      // Subtitles and I-frames may differ if they are VOD.
      const isFree = (playlist: MediaPlaylist) =>
        findTag(playlist, 'EXT-X-I-FRAMES-ONLY') !== undefined ||
        multivariant.renditions.some((it) => it.url === playlist.url && it.type === 'SUBTITLES')
      const bound = playlists.filter((it) => !isFree(it))
      return different(bound, ({ targetSec }) => targetSec, describeTarget)
    },
  },
  {
    id: 'PART_TOO_SHORT',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement:
      'A part lasts at least 85 % of PART-TARGET, unless it is INDEPENDENT, a GAP, before a GAP, or the last of its segment.',
    effects: {},
    remedy:
      'Fill parts up to PART-TARGET, or choose a PART-TARGET that is a whole number of frames.',
    on: 'playlist',
    check: ({ playlist }) =>
      partsOf(playlist).flatMap(({ part, name, isLast, next }) => {
        const isExempt = part.independent || part.gap || isLast || next?.gap === true
        const minSec = MIN_PART * (playlist.partTargetSec ?? 0) - ROUNDING_SEC
        return unless(isExempt || !(part.durationSec < minSec), () => [
          describePartTarget(playlist),
          fact(playlist, `${name} lasts ${part.duration} s`, part),
        ])
      }),
  },
  {
    id: 'PART_INF_MISSING',
    clause: 'RFC 8216bis 4.4.3.7',
    level: 'MUST',
    requirement: 'A playlist with parts has EXT-X-PART-INF with a PART-TARGET above 0.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write EXT-X-PART-INF:PART-TARGET=<longest part>.',
    on: 'playlist',
    check: ({ playlist }) => {
      const part = findTag(playlist, 'EXT-X-PART')
      const inf = findTag(playlist, 'EXT-X-PART-INF')
      return unless(
        (part === undefined && inf === undefined) || (playlist.partTargetSec ?? 0) > 0,
        () => [
          fact(playlist, 'the playlist has parts', part),
          fact(playlist, inf === undefined ? 'there is no EXT-X-PART-INF' : inf.value, inf),
        ],
      )
    },
  },
  {
    id: 'PARTS_UNLIKE_SEGMENT',
    clause: 'RFC 8216bis 3.2',
    level: 'MUST',
    requirement: 'The parts of a segment last as long as the segment.',
    effects: {},
    remedy: 'Take EXTINF and the durations of parts from the same timestamps.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments.flatMap((segment) => {
        if (segment.parts.length === 0 || !isComplete(segment)) return []
        const sumSec = totalSec(segment.parts)
        // Parts are removed in order: what is left of the first list of parts may be its end.
        const isWhole = segment !== playlist.segments.find(({ parts }) => parts.length > 0)
        const differenceSec = sumSec - segment.durationSec
        return unless(
          differenceSec <= MAX_FRAME_SEC && (!isWhole || differenceSec >= -MAX_FRAME_SEC),
          () => [
            fact(playlist, `EXTINF of ${nameOf(segment)} is ${segment.duration} s`, segment),
            fact(playlist, `its parts last ${seconds(sumSec)}`, segment.parts[0]),
          ],
        )
      }),
  },
  {
    id: 'WINDOW_TOO_SHORT',
    clause: 'RFC 8216bis 6.2.2',
    level: 'MUST',
    requirement: 'No segment is removed if less than 3 × TARGETDURATION would remain.',
    effects: {
      android: stops('Falls behind the window after a short stall (BehindLiveWindowException).'),
    },
    remedy: 'Keep more segments in the playlist.',
    on: 'update',
    check: ({ before, after }) => {
      const sumSec = totalSec(after.segments.filter(isComplete))
      const isRemoved = after.mediaSequence > before.mediaSequence
      return unless(
        !isRemoved || after.ended || !(sumSec < 3 * after.targetSec - WINDOW_ROUNDING_SEC),
        () => [
          fact(after, `3 × TARGETDURATION is ${3 * after.targetSec} s`),
          fact(after, `${seconds(sumSec)} remain from segment ${after.mediaSequence} on`),
        ],
      )
    },
  },
]

/** All parts with their neighbors. */
function partsOf({ segments }: MediaPlaylist) {
  return segments.flatMap(({ parts, sequence }) =>
    parts.map((part, index) => ({
      part,
      name: `part ${index} of segment ${sequence}`,
      next: parts[index + 1],
      // The newest part of an open segment may turn out to be its last.
      isLast: index === parts.length - 1,
    })),
  )
}
