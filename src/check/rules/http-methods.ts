/**
 * Rules on what a server offers: byte ranges, methods, codings, validators and protocol.
 *
 * @module
 */
import { isReload } from '../exchange.ts'
import { degrades, everyPlayer, stops, unless } from './evidence.ts'
import {
  headerEvidence,
  isMediaRole,
  isOk,
  isPlaylistRole,
  replyFact,
  statusEvidence,
  withoutQuery,
} from './http-replies.ts'
import type { Rule } from './rule.ts'

/** Size from which compression saves a packet. */
const MIN_GZIP_BYTES = 1400

const MORE_BYTES = degrades('Transfers more bytes for each reload.')

export const HTTP_METHODS: readonly Rule[] = [
  {
    id: 'RANGE_IGNORED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'MUST',
    requirement: 'A server of playlists with byte ranges answers requests for them with 206.',
    effects: everyPlayer(stops('Takes the whole file for the segment.')),
    remedy: 'Support Range for media, also in caches.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      const isRange = exchange.headers['range'] !== undefined && exchange.role !== 'range'
      return unless(!isRange || reply.status !== 200, () =>
        statusEvidence('the playlist has byte ranges', subject),
      )
    },
  },
  {
    id: 'RANGE_UNSUPPORTED',
    clause: 'RFC 9110 14.2',
    level: 'SHOULD',
    requirement: 'A range of a segment can be asked for.',
    effects: {},
    remedy: 'Support Range for media.',
    on: 'reply',
    check: (subject) =>
      unless(subject.exchange.role !== 'range' || subject.reply.status === 206, () =>
        statusEvidence('the request is for the first 188 bytes', subject),
      ),
  },
  {
    id: 'HEAD_UNSUPPORTED',
    clause: 'RFC 9110 9.1',
    level: 'SHOULD',
    requirement: 'HEAD is answered like GET, without body.',
    effects: {},
    remedy: 'Support HEAD for media.',
    on: 'reply',
    check: (subject) =>
      unless(subject.exchange.role !== 'head' || isOk(subject.reply), () =>
        statusEvidence('the request is HEAD for a listed segment', subject),
      ),
  },
  {
    id: 'UNKNOWN_FOUND',
    clause: 'RFC 8216bis 6.2.6',
    level: 'SHOULD',
    requirement: 'A URI that was never listed is answered with 404.',
    effects: {},
    remedy: 'Answer 404 at once where the name is unknown.',
    on: 'reply',
    check: (subject) =>
      unless(
        subject.exchange.role !== 'unknown' || [403, 404, 410].includes(subject.reply.status),
        () => statusEvidence('no playlist lists this URI', subject),
      ),
  },
  {
    id: 'GZIP_NOT_OFFERED',
    clause: 'RFC 8216bis 6.2.1',
    level: 'SHOULD',
    requirement: 'A playlist is compressed with gzip for clients that accept it.',
    effects: everyPlayer(MORE_BYTES),
    remedy: 'Compress application/vnd.apple.mpegurl in the server or cache.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      const isAsked = exchange.role === 'gzip' && reply.status === 200
      const isSmall = reply.body.length < MIN_GZIP_BYTES
      return unless(!isAsked || isSmall || reply.headers['content-encoding'] !== undefined, () =>
        headerEvidence('the request has Accept-Encoding: gzip', subject, 'Content-Encoding'),
      )
    },
  },
  {
    id: 'GZIP_UNASKED',
    clause: 'RFC 9110 12.5.3',
    level: 'SHOULD',
    requirement: 'A playlist is not compressed for clients that accept no coding.',
    effects: { android: stops('Native HLS of Chrome fails on the coding.') },
    remedy: 'Obey Accept-Encoding, and send Vary: Accept-Encoding for caches.',
    on: 'reply',
    check: (subject) => {
      const coding = subject.reply.headers['content-encoding'] ?? 'identity'
      return unless(subject.exchange.role !== 'identity' || coding === 'identity', () =>
        headerEvidence('the request has Accept-Encoding: identity', subject, 'Content-Encoding'),
      )
    },
  },
  {
    id: 'VALIDATOR_MISSING',
    clause: 'RFC 9110 8.8',
    level: 'SHOULD',
    requirement: 'A reply has ETag or Last-Modified, so that caches can revalidate it.',
    effects: {},
    remedy: 'Send ETag.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      const { etag, 'last-modified': modified } = reply.headers
      const isFile = isPlaylistRole(exchange.role) || isMediaRole(exchange.role)
      return unless(!isFile || !isOk(reply) || etag !== undefined || modified !== undefined, () =>
        headerEvidence('caches revalidate replies', subject, 'ETag'),
      )
    },
  },
  {
    id: 'HTTP2_MISSING',
    clause: 'RFC 8216bis B.1',
    level: 'MUST',
    requirement: 'Low latency is served with HTTP/2 or HTTP/3.',
    effects: { apple: degrades('Plays without low latency.') },
    remedy: 'Offer h2 by ALPN.',
    on: 'reply',
    check: ({ exchange, reply, playlist }) => {
      const isSecure = reply.url.startsWith('https:')
      const isLow = playlist?.partTargetSec !== undefined && isPlaylistRole(exchange.role)
      return unless(!isSecure || !isLow || reply.protocol === 'h2', () => [
        { text: 'the playlist has EXT-X-PART-INF', url: playlist!.url },
        replyFact(exchange, 'the server agrees on http/1.1 alone'),
      ])
    },
  },
  {
    id: 'PLAYLIST_REDIRECTED',
    clause: 'Apple HLS authoring 8.18',
    level: 'SHOULD',
    requirement: 'A media playlist, which is reloaded, is not behind a redirect.',
    effects: {
      apple: degrades('Needs one more round trip for each reload.'),
      hlsjs: degrades('Needs one more round trip for each reload.'),
    },
    remedy: 'Name the final URL in the multivariant playlist.',
    on: 'reply',
    check: ({ exchange, reply }) => {
      const isMoved = withoutQuery(reply.url) !== withoutQuery(exchange.url)
      return unless(!isReload(exchange.role) || !isMoved, () => [
        replyFact(exchange, 'the playlist has this URL'),
        { text: 'the reply comes from another one', url: reply.url },
      ])
    },
  },
]
