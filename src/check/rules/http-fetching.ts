/**
 * Rules on fetching: what is listed can be loaded, at full speed and for long enough.
 *
 * @module
 */
import { isMediaRole, isOk, isPlaylistRole } from '../exchange.ts'
import { degrades, everyPlayer, fact, seconds, stalls, stops, unless } from './evidence.ts'
import { findListed, replyFact, statusEvidence } from './http-responses.ts'
import type { Rule } from './rule.ts'

/** Shares of the duration of media that its transfer may take, in all and apart from the longest pause. */
const MAX_TRANSFER = 0.7
const MAX_FLOW = 0.5

/** Minimum transfer and pause that cannot be the network's. */
const MIN_TRANSFER_MS = 150
const MIN_PAUSE_MS = 1000

const STALL = stalls('Runs out of media, and skips or stops.')
const NO_PLAYLIST = stalls('Retries, and stops when the buffer is empty.')

export const HTTP: readonly Rule[] = [
  {
    id: 'PLAYLIST_NOT_FETCHED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement:
      'Each playlist that is named can be loaded until the stream ends with EXT-X-ENDLIST.',
    effects: everyPlayer(NO_PLAYLIST),
    remedy: 'Keep the playlist available, also while the encoder is away.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      const isRefusal = [400, 503].includes(reply.status) && /[?&]_HLS_/.test(exchange.url)
      return unless(!isPlaylistRole(exchange.role) || isOk(reply) || isRefusal, () =>
        statusEvidence('the playlist is in use', subject),
      )
    },
  },
  {
    id: 'MEDIA_NOT_FETCHED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'What a playlist lists is available for immediate download.',
    effects: everyPlayer(STALL),
    remedy: 'Publish media before the playlist that lists it, or mark it with EXT-X-GAP.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply, playlist, isDue } = subject
      if (!isMediaRole(exchange.role) || isOk(reply) || !isDue) return []
      const text = `the playlist lists this ${exchange.role}`
      const claim = playlist ? fact(playlist, text, findListed(playlist, exchange)) : { text }
      return [[claim, replyFact(exchange, `the status is ${reply.status}`)]]
    },
  },
  {
    id: 'REQUEST_FAILED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'Each request for a playlist or listed media gets a whole reply.',
    effects: everyPlayer(STALL),
    remedy: 'Find out why the server or network dropped the request.',
    on: 'failure',
    check: ({ exchange }) =>
      unless(!isPlaylistRole(exchange.role) && !isMediaRole(exchange.role), () => [
        {
          text: `the request is for ${isMediaRole(exchange.role) ? 'listed media' : 'a playlist'}`,
        },
        replyFact(exchange, exchange.failure ?? 'no reply'),
      ]),
  },
  {
    id: 'HINT_NOT_FETCHED',
    clause: 'RFC 8216bis 4.4.5.3, 6.2.6',
    level: 'MUST',
    requirement: 'A request for a hinted part is held until the part is available.',
    effects: {
      apple: degrades('Loads the part later, with a higher latency.'),
      shaka: stops('Ends in an error when the hinted part is answered with 404.'),
    },
    remedy:
      'Hold requests for the URI of EXT-X-PRELOAD-HINT, and answer all of them with the part.',
    on: 'reply',
    check: ({ exchange, reply, playlist }) => {
      const listed = findListed(playlist, exchange)
      return unless(exchange.role !== 'hint' || isOk(reply) || listed === undefined, () => [
        fact(playlist!, 'the hinted part is listed', listed),
        replyFact(exchange, `the status of the request before is ${reply.status}`),
      ])
    },
  },
  {
    id: 'GONE_TOO_EARLY',
    clause: 'RFC 8216 6.2.2',
    level: 'MUST',
    requirement:
      'A segment that left the playlist stays available for its duration and that of the longest playlist with it.',
    effects: everyPlayer(STALL),
    remedy: 'Delete a segment later than one playlist duration after it left the playlist.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply, playlist, isDue } = subject
      const isListed = findListed(playlist, exchange) !== undefined
      return unless(exchange.role !== 'gone' || isOk(reply) || isListed || !isDue, () =>
        statusEvidence(
          'the segment left the playlist less than one playlist duration ago',
          subject,
        ),
      )
    },
  },
  {
    id: 'MEDIA_TRICKLED',
    clause: 'RFC 8216bis 6.2.1, 6.2.6',
    level: 'SHOULD',
    requirement:
      'Media is transferred at the rate of the network, not at the rate of its production.',
    effects: everyPlayer(degrades('Takes the network for slow, and selects a lower bit rate.')),
    remedy: 'Send no byte of a part or segment before all of it can be sent.',
    on: 'reply',
    check: ({ exchange, reply, playlist }) => {
      const listed = findListed(playlist, exchange)
      const isMedia = ['segment', 'part', 'hint'].includes(exchange.role)
      if (!isMedia || !isOk(reply) || !(listed !== undefined && listed.durationSec > 0)) return []
      const mediaMs = listed.durationSec * 1000
      const transferMs = reply.endedAtMs - reply.headersAtMs
      const flowMs = transferMs - reply.longestPauseMs
      const isSlow =
        transferMs >= Math.max(MIN_TRANSFER_MS, MAX_TRANSFER * mediaMs) &&
        flowMs >= MAX_FLOW * mediaMs
      const hasPause = reply.longestPauseMs >= Math.max(MIN_PAUSE_MS, mediaMs)
      return unless(!isSlow && !hasPause, () => [
        fact(playlist!, `${seconds(listed.durationSec)} of media are listed`, listed),
        replyFact(exchange, `the transfer took ${seconds(transferMs / 1000)}`),
      ])
    },
  },
]
