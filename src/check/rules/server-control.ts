/**
 * Rules on EXT-X-SERVER-CONTROL (RFC 8216bis 4.4.3.8).
 *
 * @module
 */
import type { MediaPlaylist } from '../playlist/media-playlist.ts'
import { findTag } from '../playlist/tag-reader.ts'
import { fact, MAY_REFUSE, stalls, unless } from './evidence.ts'
import type { Rule } from './rule.ts'
import { changed, describePartTarget, describeTarget, different, ROUNDING_SEC } from './values.ts'

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

/** Attributes in alphabetical order, since their order means nothing. */
function controlOf(playlist: MediaPlaylist): string | undefined {
  const tag = findTag(playlist, 'EXT-X-SERVER-CONTROL')
  return (
    tag &&
    [...tag.attributes]
      .map((pair) => pair.join('='))
      .toSorted()
      .join()
  )
}

function describeControl(playlist: MediaPlaylist) {
  const tag = findTag(playlist, 'EXT-X-SERVER-CONTROL')
  return fact(playlist, tag?.value ?? 'there is no EXT-X-SERVER-CONTROL', tag)
}

function describeHoldBack(playlist: MediaPlaylist) {
  const { serverControl } = playlist
  const value = serverControl?.partHoldBackSec
  const text = value === undefined ? 'there is no PART-HOLD-BACK' : `PART-HOLD-BACK is ${value} s`
  return fact(playlist, text, serverControl)
}
