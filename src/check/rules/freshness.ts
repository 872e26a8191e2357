/**
 * Rules on how fast a media playlist grows, as a client sees it (RFC 8216bis 6.2.1).
 *
 * @module
 */
import { isComplete, type MediaPlaylist } from '../playlist/media-playlist.ts'
import { discontinuityBehind, findTag } from '../playlist/tag-reader.ts'
import { degrades, everyPage, fact, nameOf, seconds, stalls, stops, unless } from './evidence.ts'
import type { Fact, Rule } from './rule.ts'

/** Time between two segments, in target durations (6.2.1). */
const MAX_WAIT = 1.5

/** Jitter of a part on its way, and of the machine that checks. */
const PART_JITTER_MS = 1000

export const FRESHNESS: readonly Rule[] = [
  {
    id: 'PLAYLIST_STALE',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A live playlist has a new segment within 1.5 × TARGETDURATION of the one before.',
    effects: {
      apple: stalls('Runs out of media.'),
      ...everyPage(stalls('Runs out of media.')),
      android: stops(
        'Runs out of media; after 3.5 × TARGETDURATION, PlaylistStuckException (ExoPlayer#8336).',
      ),
    },
    remedy:
      'Check encoder and network; signal missing media with EXT-X-GAP, an end with EXT-X-ENDLIST.',
    on: 'reload',
    check: ({ before, playlist, withoutSegmentMs: [known, now] }) => {
      if (before === undefined || before.ended) return []
      const maxMs = MAX_WAIT * before.targetSec * 1000
      const last = before.segments.findLast(isComplete)
      return unless(!(known <= maxMs && now > maxMs), () => [
        fact(
          before,
          `TARGETDURATION is ${before.targetSec}`,
          findTag(before, 'EXT-X-TARGETDURATION'),
        ),
        fact(
          playlist,
          `${seconds(now / 1000)} after segment ${last?.sequence} none had followed`,
          last,
        ),
      ])
    },
  },
  {
    id: 'PARTS_STALE',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement:
      'A live playlist with parts has a new part within one PART-TARGET, unless the encoder restarts.',
    effects: {
      apple: stalls('Runs out of media if PART-HOLD-BACK is shorter than the pause.'),
      hlsjs: stalls('Runs out of media if PART-HOLD-BACK is shorter than the pause.'),
    },
    remedy: 'Check encoder and network; publish each part when its last frame arrives.',
    on: 'reload',
    check: ({ before, playlist, withoutPartMs: [known, now] }) => {
      const { partTargetSec, ended } = before ?? {}
      if (before === undefined || partTargetSec === undefined || ended === true) return []
      if (!before.segments.some(({ parts }) => parts.length > 0)) return []
      const maxMs = partTargetSec * 1000 + PART_JITTER_MS
      const last = before.segments.at(-1)
      // The encoder came back; PLAYLIST_STALE tells if it was away for long.
      const listed = playlist.segments.find(({ sequence }) => sequence === last!.sequence)
      if (listed !== undefined && discontinuityBehind(playlist, listed.line)) return []
      return unless(!(known <= maxMs && now > maxMs), () => [
        fact(before, `PART-TARGET is ${partTargetSec} s`, findTag(before, 'EXT-X-PART-INF')),
        fact(
          playlist,
          `${seconds(now / 1000)} after part ${last!.parts.length - 1} of segment ${last!.sequence} none had followed`,
          last!.parts.at(-1) ?? last,
        ),
      ])
    },
  },
  {
    id: 'OLDER_VERSION',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A reply never has an older version of the playlist than a reply before it.',
    effects: { hlsjs: degrades('Waits for a reload more, with less in its buffer.') },
    remedy: 'Shorten the lifetime of playlists in caches, or send a viewer to one cache.',
    on: 'older',
    check: ({ newest, older }) => [[describeEnd(newest), describeEnd(older)]],
  },
]

function describeEnd(playlist: MediaPlaylist): Fact {
  const last = playlist.segments.at(-1)
  const parts = last?.parts.length ?? 0
  const name = last === undefined ? 'nothing' : nameOf(last)
  return fact(
    playlist,
    `the version ends with ${name}${parts > 0 ? ` with ${parts} parts` : ''}`,
    last,
  )
}
