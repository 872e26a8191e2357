/**
 * Rules on delivery directives: blocking reloads, and the directives that a server refuses (RFC 8216bis 6.2.5).
 *
 * @module
 */
import { isBlocking } from '../exchange.ts'
import { parseDirectives } from '../playlist/directives.ts'
import {
  comparePositions,
  isComplete,
  nextMedia,
  totalSec,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import { degrades, namePart, seconds, stalls, stops, unless } from './evidence.ts'
import { checkStatus, replyFact, statusEvidence } from './http-responses.ts'
import type { Rule } from './rule.ts'

/** Maximum time of a response besides the time for which its request was held. */
const ROUND_TRIP_SEC = 1

/** Minimum duration of media after the requested part that proves a late response. */
const MIN_LATE_SEC = 1

const LATE = degrades('Plays with a higher latency, or without low latency.')

export const HTTP_DIRECTIVES: readonly Rule[] = [
  {
    id: 'BLOCKING_WITHOUT_PART',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'MUST',
    requirement: 'The reply to a blocking request lists the part or segment that was asked for.',
    effects: {
      apple: stops('Fails with error -15410 (AetherEngine#167).'),
      hlsjs: LATE,
    },
    remedy: 'Hold the request until the playlist has that part, or write no CAN-BLOCK-RELOAD.',
    on: 'reload',
    check: ({ exchange, reply, playlist }) => {
      const { sequence, part } = parseDirectives(exchange.url)
      if (sequence === undefined || reply.status !== 200 || playlist.ended) return []
      return unless(hasMedia(playlist, sequence, part), () => [
        replyFact(exchange, `${nameOf(sequence, part)} is asked for`),
        { text: `the reply ends with ${describeEnd(playlist)}`, url: playlist.url },
      ])
    },
  },
  {
    id: 'BLOCKING_LATE',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'SHOULD',
    requirement: 'A blocking request is answered as soon as the playlist has what was asked for.',
    effects: { apple: LATE, hlsjs: LATE },
    remedy: 'Answer waiting requests at each update of the playlist.',
    on: 'reload',
    check: ({ exchange, reply, playlist }) => {
      const { sequence, part } = parseDirectives(exchange.url)
      const heldSec = (reply.headersAtMs - exchange.sentAtMs) / 1000
      if (sequence === undefined || exchange.role !== 'blocking') return []
      const behindSec = durationBehind(playlist, sequence, part)
      const limitSec = Math.max(MIN_LATE_SEC, 3 * (playlist.partTargetSec ?? playlist.targetSec))
      return unless(behindSec < limitSec || heldSec < behindSec, () => [
        replyFact(exchange, `${nameOf(sequence, part)} is asked for`),
        { text: `the reply has ${seconds(behindSec)} of media behind it`, url: playlist.url },
      ])
    },
  },
  {
    id: 'BLOCKING_REFUSED',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'MUST',
    requirement: 'A blocking request for the next part or segment is not refused.',
    effects: { apple: stops('Stops, since the playlist cannot be reloaded.'), hlsjs: LATE },
    remedy: 'Refuse only requests for more than two segments ahead.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      return unless(!isBlocking(exchange.role) || reply.status !== 400, () =>
        statusEvidence('the request is for the next part or segment', subject),
      )
    },
  },
  {
    id: 'BLOCKING_HELD_TOO_LONG',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'SHOULD',
    requirement: 'A request that was held for three target durations is answered with status 503.',
    effects: { hlsjs: stalls('Gives up the request after 10 s.') },
    remedy: 'End the wait after three target durations with 503.',
    on: 'reply',
    check: ({ exchange, reply, playlist }) => {
      const heldSec = (reply.headersAtMs - exchange.sentAtMs) / 1000
      const limitSec = 3 * (playlist?.targetSec ?? Infinity)
      return unless(!(isBlocking(exchange.role) && heldSec > limitSec + ROUND_TRIP_SEC), () => [
        { text: `three target durations are ${limitSec} s` },
        replyFact(exchange, `the request was held for ${heldSec.toFixed(1)} s`),
      ])
    },
  },
  {
    id: 'PART_WITHOUT_SEQUENCE',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'MUST',
    requirement: 'A request with _HLS_part and without _HLS_msn is refused with status 400.',
    effects: {},
    remedy: 'Answer 400 where _HLS_msn is missing.',
    on: 'reply',
    check: checkStatus(
      'part-without-sequence',
      [400],
      'the request has _HLS_part without _HLS_msn',
    ),
  },
  {
    id: 'FAR_AHEAD_NOT_REFUSED',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'SHOULD',
    requirement: 'A request for more than two segments ahead of the last one is refused with 400.',
    effects: {},
    remedy: 'Answer 400 where _HLS_msn exceeds the last media sequence number by more than 2.',
    on: 'reply',
    check: checkStatus(
      'far-ahead',
      [400],
      'the request is for the tenth segment after the last one',
    ),
  },
  {
    id: 'OLD_SEQUENCE_REFUSED',
    clause: 'RFC 8216bis 6.2.5.2',
    level: 'MUST',
    requirement: 'A blocking request for a segment that is listed gets the playlist at once.',
    effects: {
      apple: stalls('Cannot reload the playlist after a pause.'),
      hlsjs: stalls('Cannot reload the playlist after a pause.'),
    },
    remedy: 'Answer with the playlist where _HLS_msn is listed or older.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply, playlist } = subject
      if (exchange.role !== 'old-sequence') return []
      const heldSec = (reply.headersAtMs - exchange.sentAtMs) / 1000
      const isHeld = heldSec > (playlist?.targetSec ?? Infinity) + ROUND_TRIP_SEC
      const seen = isHeld ? `the request was held` : `the status is ${reply.status}`
      return unless(reply.status === 200 && !isHeld, () => [
        { text: 'the request is for the first segment that is listed' },
        replyFact(exchange, seen),
      ])
    },
  },
]

function nameOf(sequence: number, part: number | undefined): string {
  return part === undefined ? `segment ${sequence}` : namePart(sequence, part)
}

/** Whether a playlist has a part, or a complete segment, or what follows it. */
function hasMedia(playlist: ParsedPlaylist, sequence: number, part = Infinity): boolean {
  const isPast = comparePositions(nextMedia(playlist), { sequence, part }) > 0
  return isPast && playlist.segments.length > 0
}

function describeEnd({ segments }: ParsedPlaylist): string {
  const last = segments.at(-1)
  if (last === undefined) return 'no segment'
  return isComplete(last)
    ? `segment ${last.sequence}`
    : nameOf(last.sequence, last.parts.length - 1)
}

/** Duration of the media after a part, or after a segment. */
function durationBehind({ segments }: ParsedPlaylist, sequence: number, part?: number): number {
  const own = segments.find((segment) => segment.sequence === sequence)
  const parts = part === undefined ? [] : (own?.parts.slice(part + 1) ?? [])
  return totalSec([...parts, ...segments.filter((segment) => segment.sequence > sequence)])
}
