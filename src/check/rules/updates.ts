/**
 * Rules on a media playlist over its versions: what may change from one to the next (RFC 8216bis 6.2.1, 6.2.2), and how
 * soon the next one comes.
 *
 * @module
 */
import { isComplete, type ParsedSegment, type ParsedPlaylist } from '../playlist/media-playlist.ts'
import { discontinuityAfter, findTag } from '../playlist/tag-reader.ts'
import {
  degrades,
  everyPage,
  everyPlayer,
  fact,
  nameOf,
  namePart,
  seconds,
  stalls,
  stops,
  unless,
} from './evidence.ts'
import type { Evidence, Fact, Rule } from './rule.ts'
import type { Subjects } from './subjects.ts'

/** Time between two segments, in target durations (6.2.1). */
const MAX_WAIT = 1.5

/** Jitter of a part on its way, and of the machine that checks. */
const PART_JITTER_MS = 1000

export const TIMELINE: readonly Rule[] = [
  {
    id: 'MEDIA_SEQUENCE_BACK',
    clause: 'RFC 8216bis 6.2.2',
    level: 'MUST',
    requirement: 'EXT-X-MEDIA-SEQUENCE never decreases.',
    effects: {
      apple: stops('Stops at the end of what it has loaded.'),
      hlsjs: stops(
        'Waits for a number that the playlist has passed before, or refuses the playlist.',
      ),
      android: stops('Buffers without end, or ends in PlaylistResetException (ExoPlayer#2872).'),
    },
    remedy: 'Keep counting where the encoder or the server restarts, or publish under a new URL.',
    on: 'update',
    check: ({ before, after }) =>
      unless(after.mediaSequence >= before.mediaSequence, () => [
        describeSequence(before, 'MEDIA', before.mediaSequence),
        describeSequence(after, 'MEDIA', after.mediaSequence),
      ]),
  },
  {
    id: 'SEGMENT_CHANGED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A listed segment keeps its number, URI, EXTINF, date and DISCONTINUITY.',
    effects: {
      hlsjs: stops('Refuses the playlist: "media sequence mismatch", where the URI changed.'),
    },
    remedy: 'Remove segments from the head only, and count each one in EXT-X-MEDIA-SEQUENCE.',
    on: 'update',
    check: (update) =>
      keptSegments(update).flatMap(([old, now]) => {
        const change = changeOf(old, now)
        if (change === undefined) return []
        const [was, is] = change
        return [
          [
            fact(update.before, `${was} (${nameOf(old)})`, old),
            fact(update.after, `${is} (segment ${now.sequence})`, now),
          ] as const,
        ]
      }),
  },
  {
    id: 'DISCONTINUITY_SEQUENCE_WRONG',
    clause: 'RFC 8216bis 6.2.2',
    level: 'MUST',
    requirement:
      'EXT-X-DISCONTINUITY-SEQUENCE grows by one with each DISCONTINUITY that is removed, and never decreases.',
    effects: {
      hlsjs: stops(
        'Refuses the playlist, "discontinuity sequence mismatch", or stalls (hls.js#7163).',
      ),
      android: stalls('Places segments on a wrong timeline (ExoPlayer#10692).'),
    },
    remedy:
      'Write EXT-X-DISCONTINUITY-SEQUENCE and count each DISCONTINUITY that leaves the playlist.',
    on: 'update',
    check: (update) => {
      const { before, after } = update
      if (goesBack(update)) return []
      const moved = keptSegments(update).find(
        ([old, now]) => old.discontinuitySequence !== now.discontinuitySequence,
      )
      if (moved !== undefined)
        return [[describeTimeline(before, moved[0]), describeTimeline(after, moved[1])]]
      const removed = after.mediaSequence - before.mediaSequence
      const last = before.segments[Math.min(removed, before.segments.length) - 1]
      const expected = last?.discontinuitySequence ?? before.discontinuitySequence
      // Segments that came and went between the two versions are not known.
      const isAllKnown = removed <= before.segments.length
      const isKept = isAllKnown
        ? after.discontinuitySequence === expected
        : after.discontinuitySequence >= expected
      return unless(isKept, () => [
        last === undefined
          ? describeSequence(before, 'DISCONTINUITY', before.discontinuitySequence)
          : describeTimeline(before, last),
        describeSequence(after, 'DISCONTINUITY', after.discontinuitySequence),
      ])
    },
  },
  {
    id: 'SEGMENT_BECAME_GAP',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A segment or part that was listed with media does not become a gap.',
    effects: { hlsjs: degrades('Skips the segment, or fails to load it.') },
    remedy: 'Keep listed media, and mark what is missing when it is added.',
    on: 'update',
    check: (update) =>
      keptSegments(update).flatMap(([old, now]) => {
        const part = now.parts.findIndex(
          (part, index) => part.gap && old.parts[index]?.gap === false,
        )
        const isGap = isComplete(old) && now.gap && !old.gap
        const name = isGap ? `segment ${old.sequence}` : namePart(old.sequence, part)
        return unless(!isGap && part < 0, () => [
          fact(update.before, `${name} has media`, isGap ? old : old.parts[part]),
          fact(update.after, `${name} is a gap`, isGap ? now : now.parts[part]),
        ])
      }),
  },
  {
    id: 'ENDLIST_REMOVED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'EXT-X-ENDLIST stays.',
    effects: everyPlayer(stops('Has stopped reloading.')),
    remedy: 'Continue under a new URL, or write EXT-X-ENDLIST only when nothing can follow.',
    on: 'update',
    check: ({ before, after }) =>
      unless(!before.ended || after.ended, () => [
        fact(before, '#EXT-X-ENDLIST', findTag(before, 'EXT-X-ENDLIST')),
        fact(after, 'the playlist has no EXT-X-ENDLIST'),
      ]),
  },
  {
    id: 'SEGMENT_AFTER_ENDLIST',
    clause: 'RFC 8216bis 4.4.3.4',
    level: 'MUST',
    requirement: 'No segment is added after EXT-X-ENDLIST.',
    effects: everyPlayer(stops('Has stopped reloading.')),
    remedy: 'Write EXT-X-ENDLIST with the last segment, not before.',
    on: 'update',
    check: ({ before, after }) => {
      const last = before.segments.at(-1)?.sequence ?? before.mediaSequence - 1
      const added = after.segments.find(({ sequence }) => sequence > last)
      return unless(!before.ended || !after.ended || added === undefined, () => [
        fact(before, '#EXT-X-ENDLIST', findTag(before, 'EXT-X-ENDLIST')),
        fact(after, `segment ${added!.sequence} was added`, added),
      ])
    },
  },
  {
    id: 'PLAYLIST_TYPE_BROKEN',
    clause: 'RFC 8216bis 6.2.1, 6.2.2',
    level: 'MUST',
    requirement: 'With EXT-X-PLAYLIST-TYPE nothing is removed; with VOD nothing changes.',
    effects: {
      hlsjs: degrades('Stops reloading a playlist that says VOD.'),
    },
    remedy: 'Leave EXT-X-PLAYLIST-TYPE out of playlists with a sliding window.',
    on: 'update',
    check: ({ before, after }) => {
      const tag = findTag(before, 'EXT-X-PLAYLIST-TYPE')
      const isRemoved = after.mediaSequence > before.mediaSequence
      const isBroken = tag?.value === 'VOD' ? before.text !== after.text : isRemoved
      return unless(tag === undefined || !isBroken, () => [
        fact(before, `EXT-X-PLAYLIST-TYPE is ${tag!.value}`, tag),
        fact(after, isRemoved ? 'segments were removed' : 'the playlist changed'),
      ])
    },
  },
  {
    id: 'KEY_REMOVED',
    clause: 'RFC 8216bis 6.2.3',
    level: 'MUST',
    requirement: 'EXT-X-KEY stays while a segment that it applies to is listed.',
    effects: {
      apple: stops('Cannot decrypt the segment.'),
      hlsjs: stops('Cannot decrypt the segment.'),
    },
    remedy: 'Repeat EXT-X-KEY before the first segment that is left.',
    on: 'update',
    check: (update) =>
      keptSegments(update).flatMap(([old, now]) =>
        unless(old.encryption === undefined || now.encryption !== undefined, () => [
          fact(update.before, `${nameOf(old)} is encrypted with ${old.encryption}`, old),
          fact(update.after, `no EXT-X-KEY applies to ${nameOf(now)}`, now),
        ]),
      ),
  },
]

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
      // The encoder reconnected; PLAYLIST_STALE reports a long absence.
      const listed = playlist.segments.find(({ sequence }) => sequence === last!.sequence)
      if (listed !== undefined && discontinuityAfter(playlist, listed.line)) return []
      return unless(!(known <= maxMs && now > maxMs), () => [
        fact(before, `PART-TARGET is ${partTargetSec} s`, findTag(before, 'EXT-X-PART-INF')),
        fact(
          playlist,
          `${seconds(now / 1000)} after ${namePart(last!.sequence, last!.parts.length - 1)} none had followed`,
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

/** Segments that both versions list, complete or not; none if the sequence numbers went back. */
export function keptSegments(
  update: Pick<Subjects['update'], 'before' | 'after'>,
): readonly (readonly [old: ParsedSegment, now: ParsedSegment])[] {
  if (goesBack(update)) return []
  const { before, after } = update
  const first = after.segments[0]?.sequence ?? 0
  return before.segments.flatMap((old) => {
    const now = after.segments[old.sequence - first]
    return now === undefined ? [] : [[old, now] as const]
  })
}

function goesBack({ before, after }: Pick<Subjects['update'], 'before' | 'after'>): boolean {
  return after.mediaSequence < before.mediaSequence
}

/** @returns what was and what is, if they contradict each other */
function changeOf(old: ParsedSegment, now: ParsedSegment): readonly [string, string] | undefined {
  if (isComplete(old) && pathOf(old) !== pathOf(now)) {
    return [`URI is ${old.uri}`, `URI is ${now.uri ?? 'missing'}`]
  }
  if (isComplete(old) && old.durationSec !== now.durationSec) {
    return [`EXTINF is ${old.duration}`, `EXTINF is ${now.duration}`]
  }
  if (old.discontinuity !== now.discontinuity) {
    return old.discontinuity ? ['DISCONTINUITY', 'none'] : ['no DISCONTINUITY', 'one']
  }
  const isDated = old.dateTimeMs !== undefined && now.dateTimeMs !== undefined
  if (!isDated || Object.is(old.dateTimeMs, now.dateTimeMs)) return undefined
  return [`date is ${old.dateTime}`, `date is ${now.dateTime}`]
}

/** URL without query, which may carry a token of the request. */
function pathOf({ url }: ParsedSegment): string | undefined {
  return url?.replace(/\?.*$/, '')
}

function describeSequence(playlist: ParsedPlaylist, which: string, value: number): Evidence[0] {
  const name = `EXT-X-${which}-SEQUENCE`
  return fact(playlist, `${name} is ${value}`, findTag(playlist, name))
}

function describeTimeline(playlist: ParsedPlaylist, segment: ParsedSegment): Fact {
  const { sequence, discontinuitySequence } = segment
  const text = `discontinuity sequence number of segment ${sequence} is ${discontinuitySequence}`
  return fact(playlist, text, segment)
}

function describeEnd(playlist: ParsedPlaylist): Fact {
  const last = playlist.segments.at(-1)
  const parts = last?.parts.length ?? 0
  const name = last === undefined ? 'nothing' : nameOf(last)
  return fact(
    playlist,
    `the version ends with ${name}${parts > 0 ? ` with ${parts} parts` : ''}`,
    last,
  )
}
