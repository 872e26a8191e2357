/**
 * Rules on what Delivery Directives return, and on rendition reports (RFC 8216bis 4.4.5.4, 6.2.5, B.1).
 *
 * @module
 */
import { withoutDirectives } from '../playlist/directives.ts'
import {
  describeEdge,
  isComplete,
  liveEdge,
  resolve,
  totalSec,
  type ParsedSegment,
  type ParsedPlaylist,
  type Position,
} from '../playlist/media-playlist.ts'
import { decimal, findTag, findTags, unquoted, type Tag } from '../playlist/tag-reader.ts'
import { degrades, fact, MAY_REFUSE, seconds, stalls, stops, unless } from './evidence.ts'
import type { Evidence, Fact, Rule } from './rule.ts'

/** Rounding of sums of durations. */
const ROUNDING_SEC = 0.01

/** Distance of the ends of two renditions, in part targets: one (B.1), and as much for audio that is cut elsewhere. */
const MAX_APART = 2

export const DELIVERY: readonly Rule[] = [
  {
    id: 'DELTA_DIFFERS',
    clause: 'RFC 8216bis 6.2.5.1',
    level: 'MUST',
    requirement: 'A delta update, merged, is the full playlist of the same version.',
    effects: { hlsjs: stops('Refuses the playlist, or plays segments twice or not at all.') },
    remedy: 'Render both from the same state; skip whole segments with all of their tags.',
    on: 'delta',
    check: ({ merged, full }) => {
      const claim = (text: string, place?: { line: number }) =>
        fact(full, `in full: ${text}`, place)
      const seen = (text: string, place?: { line: number }) =>
        fact(merged, `merged: ${text}`, place)
      const heads = ['mediaSequence', 'discontinuitySequence', 'targetSec'] as const
      const head = heads.find((name) => full[name] !== merged[name])
      if (head !== undefined) {
        return [[claim(`${head} is ${full[head]}`), seen(`${head} is ${merged[head]}`)]]
      }
      const at = full.segments.findIndex((segment, index) => {
        const other = merged.segments[index]
        return other === undefined || describeSegment(segment) !== describeSegment(other)
      })
      if (at < 0) return []
      const [a, b] = [full.segments[at]!, merged.segments[at]]
      return [
        [claim(describeSegment(a), a), seen(b === undefined ? 'nothing' : describeSegment(b), b)],
      ]
    },
  },
  {
    id: 'DELTA_SKIPS_TOO_MUCH',
    clause: 'RFC 8216bis 6.2.5.1',
    level: 'MUST',
    requirement:
      'A delta update skips only segments that are further from the end than CAN-SKIP-UNTIL.',
    effects: { hlsjs: stalls('Lacks segments, and loads the full playlist again.') },
    remedy: 'Skip what ends more than CAN-SKIP-UNTIL before the end of the last segment.',
    on: 'playlist',
    check: ({ playlist }) => {
      const tag = findTag(playlist, 'EXT-X-SKIP')
      if (tag === undefined) return []
      const skipped = decimal(tag, 'SKIPPED-SEGMENTS') ?? 0
      const boundarySec = playlist.serverControl?.canSkipUntilSec ?? Infinity
      const leftSec = totalSec(playlist.segments.slice(skipped).filter(isComplete))
      // The skipped segment next to the boundary begins beyond it.
      const nearestSec = leftSec + (playlist.segments[skipped - 1]?.durationSec ?? 0)
      return unless(!playlist.ended && nearestSec >= boundarySec - ROUNDING_SEC, () => [
        fact(
          playlist,
          playlist.ended ? 'the playlist has ended' : `CAN-SKIP-UNTIL is ${boundarySec} s`,
          playlist.serverControl,
        ),
        fact(
          playlist,
          `${skipped} segments are skipped, up to ${seconds(leftSec)} before the end`,
          tag,
        ),
      ])
    },
  },
  {
    id: 'DELTA_MISSING',
    clause: 'RFC 8216bis 6.2.5.1',
    level: 'MUST',
    requirement: 'With CAN-SKIP-UNTIL, a request with _HLS_skip gets a delta update.',
    effects: {},
    remedy: 'Answer _HLS_skip, or remove CAN-SKIP-UNTIL.',
    on: 'reply',
    check: ({ exchange, reply, playlist }) => {
      if (exchange.role !== 'delta' || reply.status !== 200 || playlist === undefined) return []
      const boundarySec = playlist.serverControl?.canSkipUntilSec
      const sumSec = totalSec(playlist.segments.filter(isComplete).slice(1))
      // hls.js#6949: a server does well to send the full playlist where players merge wrongly.
      const isExcused = playlist.ended || playlist.segments.some((it) => it.discontinuity)
      if (boundarySec === undefined || isExcused || sumSec <= boundarySec) return []
      return unless(reply.body.includes('#EXT-X-SKIP'), () => [
        fact(playlist, `CAN-SKIP-UNTIL is ${boundarySec} s`, playlist.serverControl),
        fact(exchange, 'the reply has no EXT-X-SKIP'),
      ])
    },
  },
  {
    id: 'REPORT_MISSING',
    clause: 'RFC 8216bis B.1',
    level: 'MUST',
    requirement:
      'A low-latency media playlist has one EXT-X-RENDITION-REPORT for each other media playlist.',
    effects: {
      apple: degrades('Switches later: it has to look for the live edge (RFC 8216bis B.1).'),
      hlsjs: degrades('Switches later: it has to look for the live edge (RFC 8216bis B.1).'),
    },
    remedy: 'Write a report for each other rendition to each media playlist.',
    on: 'renditions',
    check: ({ playlists }) =>
      playlists.filter(isLowLatency).flatMap((playlist) => {
        const reported = reportsOf(playlist).map((tag) => targetOf(playlist, tag))
        const isReported = (other: ParsedPlaylist) => reported.some((url) => isNamed(other, url))
        return playlists
          .filter((other) => other !== playlist && isLowLatency(other) && !isReported(other))
          .map((other): Evidence => [
            fact(other, 'media playlist with parts'),
            fact(playlist, `no EXT-X-RENDITION-REPORT names ${other.url}`),
          ])
      }),
  },
  {
    id: 'RENDITION_BEHIND',
    clause: 'RFC 8216bis B.1',
    level: 'MUST',
    requirement: 'All renditions are updated within one PART-TARGET.',
    effects: { apple: degrades('May play at regular latency, as B.1 asks of clients.') },
    remedy: 'Publish the same part of all renditions together.',
    on: 'renditions',
    check: ({ playlists }) =>
      playlists.filter(isLowLatency).flatMap((playlist) => {
        const { partTargetSec = Infinity } = playlist
        return reportsOf(playlist).flatMap((tag): readonly Evidence[] => {
          const other = playlists.find((it) => isNamed(it, targetOf(playlist, tag)))
          const edge = liveEdge(playlist)
          const sequence = decimal(tag, 'LAST-MSN') ?? edge.sequence
          const part = decimal(tag, 'LAST-PART') ?? edge.part
          const [own, reported] = [
            dateAfter(playlist, edge),
            other && dateAfter(other, { sequence, part }),
          ]
          if (own === undefined || reported === undefined) return []
          const apartSec = Math.abs(own - reported) / 1000
          return unless(apartSec <= MAX_APART * partTargetSec, () => [
            endOf(playlist),
            fact(playlist, `${tag.value} is ${seconds(apartSec)} apart`, tag),
          ])
        })
      }),
  },
  {
    id: 'REPORT_ABSOLUTE',
    clause: 'RFC 8216bis 4.4.5.4',
    level: 'MUST',
    requirement: 'The URI of EXT-X-RENDITION-REPORT is relative.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write the URI relative to the media playlist.',
    on: 'playlist',
    check: ({ playlist }) =>
      reportsOf(playlist).flatMap((tag) =>
        unless(!/^[a-z][a-z0-9+.-]*:/i.test(unquoted(tag, 'URI') ?? ''), () => [
          fact(playlist, 'the URI of a report is relative'),
          fact(playlist, tag.value, tag),
        ]),
      ),
  },
  {
    id: 'REPORT_WRONG',
    clause: 'RFC 8216bis 4.4.5.4',
    level: 'MUST',
    requirement: 'EXT-X-RENDITION-REPORT names a part that its rendition lists by then.',
    effects: { hlsjs: stalls('Asks for a part that does not exist yet.') },
    remedy: 'Update the reports with the playlists that they name.',
    on: 'renditions',
    check: ({ versions }) =>
      // The version before too: often only the response to a request that followed that one is there by now.
      versions
        .flatMap((version) => [version, version.before ?? []].flat())
        .flatMap(({ playlist, atMs }) =>
          reportsOf(playlist).flatMap((tag): readonly Evidence[] => {
            const other = versions.find((it) => isNamed(it.playlist, targetOf(playlist, tag)))
            // Only a playlist that was asked for later has to have what was reported.
            if (other === undefined || other.sentAtMs < atMs) return []
            const edge = liveEdge(playlist)
            const sequence = decimal(tag, 'LAST-MSN') ?? edge.sequence
            const part = decimal(tag, 'LAST-PART')
            return unless(isListed(other.playlist, sequence, part), () => [
              fact(playlist, tag.value, tag),
              endOf(other.playlist),
            ])
          }),
        ),
  },
]

function describeSegment({
  sequence,
  uri,
  duration,
  discontinuitySequence,
  gap,
  parts,
}: ParsedSegment) {
  const names = parts.length === 0 ? '' : ` with ${parts.map((part) => part.uri).join(' ')}`
  const gone = gap ? ', a gap' : ''
  return `segment ${sequence}, timeline ${discontinuitySequence}: ${uri} of ${duration} s${gone}${names}`
}

function endOf(playlist: ParsedPlaylist): Fact {
  const text = `the playlist ends with ${describeEdge(playlist)}`
  return fact(playlist, text, playlist.segments.at(-1))
}

/** Whether a playlist lists a segment, or a part; or a later one. */
function isListed({ segments }: ParsedPlaylist, sequence: number, part?: number): boolean {
  const last = segments.at(-1)
  if (last === undefined) return false
  if (last.sequence !== sequence) return last.sequence > sequence
  if (part === undefined) return isComplete(last)
  return part < last.parts.length || (isComplete(last) && last.parts.length === 0)
}

function isLowLatency({ segments, ended }: ParsedPlaylist): boolean {
  return !ended && segments.some(({ parts }) => parts.length > 0)
}

function reportsOf(playlist: ParsedPlaylist): readonly Tag[] {
  return findTags(playlist, 'EXT-X-RENDITION-REPORT')
}

/** Whether a URL is that of the playlist, before or after redirects. */
function isNamed({ url, requestedUrl }: ParsedPlaylist, name: string): boolean {
  return name === url || name === requestedUrl
}

function targetOf(playlist: ParsedPlaylist, tag: Tag): string {
  const url = resolve(unquoted(tag, 'URI') ?? '', playlist.url)
  return URL.canParse(url) ? withoutDirectives(url) : url
}

/** Date at the end of a part, in milliseconds since 1970; undefined if it is not listed. */
function dateAfter({ segments }: ParsedPlaylist, { sequence, part }: Position): number | undefined {
  const segment = segments.find((it) => it.sequence === sequence)
  if (segment?.dateTimeMs === undefined || segment.parts.length <= part || part < 0)
    return undefined
  return segment.dateTimeMs + totalSec(segment.parts.slice(0, part + 1)) * 1000
}
