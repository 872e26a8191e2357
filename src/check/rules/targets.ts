/**
 * Rules on what a media playlist promises as a whole: EXT-X-TARGETDURATION and EXT-X-PART-INF with what they bound (RFC
 * 8216bis 4.4.3.1, 4.4.3.7, 4.4.4.9), and EXT-X-SERVER-CONTROL (4.4.3.8).
 *
 * @module
 */
import { isComplete, totalSec, type ParsedPlaylist } from '../playlist/media-playlist.ts'
import { findTag, pairsOf, unquoted } from '../playlist/tag-reader.ts'
import { fact, MAY_REFUSE, nameOf, namePart, seconds, stalls, stops, unless } from './evidence.ts'
import type { Evidence, Fact, Rule } from './rule.ts'
import type { Subjects } from './subjects.ts'

/** Shortest part that is not exempt, in PART-TARGET (4.4.4.9). */
const MIN_PART = 0.85

/** Deviation of the sum of the parts from EXTINF: a frame at 24 frames per second. */
const MAX_FRAME_SEC = 0.042

/** Rounding of the EXTINF of a whole playlist. */
const WINDOW_ROUNDING_SEC = 0.01

/** Rounding of printed numbers. */
const ROUNDING_SEC = 1e-6

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
      const isFree = (playlist: ParsedPlaylist) =>
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

export const SERVER_CONTROL: readonly Rule[] = [
  {
    id: 'SERVER_CONTROL_CHANGED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'EXT-X-SERVER-CONTROL never changes.',
    effects: {},
    remedy: 'Fix its values when the stream starts.',
    on: 'update',
    check: (update) => changed(update, controlOf, describeControl),
  },
  {
    id: 'SERVER_CONTROLS_DIFFER',
    clause: 'RFC 8216bis 6.2.4',
    level: 'MUST',
    requirement: 'All media playlists have the same EXT-X-SERVER-CONTROL, or none has it.',
    effects: {},
    remedy: 'Write the same tag to all media playlists.',
    on: 'renditions',
    check: ({ playlists }) => different(playlists, controlOf, describeControl),
  },
  {
    id: 'PART_HOLD_BACK_TOO_SHORT',
    clause: 'RFC 8216bis 4.4.3.8',
    level: 'MUST',
    requirement: 'With EXT-X-PART-INF, PART-HOLD-BACK is present and at least 2 × PART-TARGET.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write PART-HOLD-BACK=<3 × PART-TARGET>.',
    on: 'playlist',
    check: ({ playlist }) => {
      const { partTargetSec, serverControl } = playlist
      const holdBackSec = serverControl?.partHoldBackSec ?? 0
      return unless(
        partTargetSec === undefined || holdBackSec >= 2 * partTargetSec - ROUNDING_SEC,
        () => [describePartTarget(playlist), describeHoldBack(playlist)],
      )
    },
  },
  {
    id: 'HOLD_BACK_TOO_SHORT',
    clause: 'RFC 8216bis 4.4.3.8',
    level: 'MUST',
    requirement: 'HOLD-BACK is at least 3 × TARGETDURATION.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Raise HOLD-BACK, or leave it out.',
    on: 'playlist',
    check: ({ playlist }) => {
      const { serverControl, targetSec } = playlist
      return unless(
        !((serverControl?.holdBackSec ?? Infinity) < 3 * targetSec - ROUNDING_SEC),
        () => [
          describeTarget(playlist),
          fact(playlist, `HOLD-BACK is ${serverControl?.holdBackSec} s`, serverControl),
        ],
      )
    },
  },
  {
    id: 'SKIP_BOUNDARY_TOO_SHORT',
    clause: 'RFC 8216bis 4.4.3.8',
    level: 'MUST',
    requirement:
      'CAN-SKIP-UNTIL is at least 6 × TARGETDURATION, and CAN-SKIP-DATERANGES does not come without it.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write CAN-SKIP-UNTIL=<6 × TARGETDURATION>.',
    on: 'playlist',
    check: ({ playlist }) => {
      const { serverControl, targetSec } = playlist
      if (serverControl === undefined) return []
      const isAlone = /CAN-SKIP-DATERANGES=YES/.test(serverControl.text)
      const boundarySec = serverControl.canSkipUntilSec ?? (isAlone ? 0 : Infinity)
      return unless(!(boundarySec < 6 * targetSec - ROUNDING_SEC), () => [
        describeTarget(playlist),
        fact(playlist, serverControl.text, serverControl),
      ])
    },
  },
  {
    id: 'PART_HOLD_BACK_SHORT',
    clause: 'RFC 8216bis 4.4.3.8',
    level: 'SHOULD',
    requirement: 'PART-HOLD-BACK is at least 3 × PART-TARGET.',
    effects: { hlsjs: stalls('Stalls when a part is late, since it plays exactly there.') },
    remedy: 'Write PART-HOLD-BACK=<3 × PART-TARGET>.',
    on: 'playlist',
    check: ({ playlist }) => {
      const { partTargetSec = 0, serverControl } = playlist
      const holdBackSec = serverControl?.partHoldBackSec ?? 0
      const isBetween =
        holdBackSec >= 2 * partTargetSec - ROUNDING_SEC &&
        holdBackSec < 3 * partTargetSec - ROUNDING_SEC
      return unless(!isBetween, () => [describePartTarget(playlist), describeHoldBack(playlist)])
    },
  },
]

/** All parts with their neighbors. */
function partsOf({ segments }: ParsedPlaylist) {
  return segments.flatMap(({ parts, sequence }) =>
    parts.map((part, index) => ({
      part,
      name: namePart(sequence, index),
      next: parts[index + 1],
      // The newest part of an open segment may turn out to be its last.
      isLast: index === parts.length - 1,
    })),
  )
}

/** Attributes in alphabetical order, since their order means nothing. */
function controlOf(playlist: ParsedPlaylist): string | undefined {
  const tag = findTag(playlist, 'EXT-X-SERVER-CONTROL')
  return tag && pairsOf(tag).toSorted().join()
}

function describeControl(playlist: ParsedPlaylist) {
  const tag = findTag(playlist, 'EXT-X-SERVER-CONTROL')
  return fact(playlist, tag?.value ?? 'there is no EXT-X-SERVER-CONTROL', tag)
}

function describeHoldBack(playlist: ParsedPlaylist) {
  const { serverControl } = playlist
  const value = serverControl?.partHoldBackSec
  const text = value === undefined ? 'there is no PART-HOLD-BACK' : `PART-HOLD-BACK is ${value} s`
  return fact(playlist, text, serverControl)
}

/** The value before and after, if it has changed. */
function changed(
  { before, after }: Subjects['update'],
  pick: (playlist: ParsedPlaylist) => unknown,
  describe: (playlist: ParsedPlaylist) => Fact,
): readonly Evidence[] {
  return unless(Object.is(pick(before), pick(after)), () => [describe(before), describe(after)])
}

/** Each playlist whose value differs from that of the first one. */
function different(
  playlists: readonly ParsedPlaylist[],
  pick: (playlist: ParsedPlaylist) => unknown,
  describe: (playlist: ParsedPlaylist) => Fact,
): readonly Evidence[] {
  const [first, ...others] = playlists
  return others.flatMap((other) =>
    unless(Object.is(pick(first!), pick(other)), () => [describe(first!), describe(other)]),
  )
}

function describeTarget(playlist: ParsedPlaylist) {
  const tag = findTag(playlist, 'EXT-X-TARGETDURATION')
  return fact(playlist, `TARGETDURATION is ${tag?.value ?? 'absent'}`, tag)
}

function describePartTarget(playlist: ParsedPlaylist) {
  const tag = findTag(playlist, 'EXT-X-PART-INF')
  const target = tag && unquoted(tag, 'PART-TARGET')
  return fact(playlist, `PART-TARGET is ${target === undefined ? 'absent' : `${target} s`}`, tag)
}
