/**
 * Rules on what a server sends with a response, and what it offers: types, CORS, caching, byte ranges, methods, codings,
 * validators and protocol.
 *
 * @module
 */
import { isMediaRole, isOk, isPlaylistRole, isReload, type RequestRole } from '../exchange.ts'
import { degrades, everyPage, everyPlayer, stops, unless } from './evidence.ts'
import {
  checkStatus,
  headerEvidence,
  lifetimeSec,
  mimeType,
  replyFact,
  statusEvidence,
  withoutQuery,
  type ReplySubject,
} from './http-responses.ts'
import type { Rule } from './rule.ts'

const PLAYLIST_TYPES = new Set(['application/vnd.apple.mpegurl', 'audio/mpegurl'])

/** Types of segments in use; every player ignores `application/octet-stream`. */
const MEDIA_TYPE =
  /^(video\/(mp2t|mp4|iso\.segment)|audio\/(mp2t|mp4|aac|aacp|x-aac|mpeg|ac3|eac3|iso\.segment)|application\/(mp4|octet-stream)|binary\/octet-stream|text\/vtt)$/

const LOAD = degrades('Waits for the origin server where a cache could answer.')

/** Size from which compression saves a packet. */
const MIN_GZIP_BYTES = 1400

const MORE_BYTES = degrades('Transfers more bytes for each reload.')

export const HTTP_HEADERS: readonly Rule[] = [
  {
    id: 'PLAYLIST_NOT_IDENTIFIED',
    clause: 'RFC 8216bis 4',
    level: 'MUST',
    requirement:
      'A playlist has a path that ends with .m3u8 or .m3u, or the Content-Type of playlists.',
    effects: { apple: stops('May refuse the playlist.') },
    remedy: 'Send Content-Type: application/vnd.apple.mpegurl.',
    on: 'reply',
    check: (subject) =>
      unless(hasPlaylistType(subject) || hasPlaylistName(subject), () =>
        headerEvidence('the path does not end with .m3u8', subject, 'Content-Type'),
      ),
  },
  {
    id: 'PLAYLIST_TYPE',
    clause: 'Apple HLS authoring 10.4',
    level: 'SHOULD',
    requirement:
      'The Content-Type of a playlist is application/vnd.apple.mpegurl or audio/mpegurl.',
    effects: {},
    remedy: 'Send Content-Type: application/vnd.apple.mpegurl.',
    on: 'reply',
    check: (subject) =>
      unless(hasPlaylistType(subject) || !hasPlaylistName(subject), () =>
        headerEvidence('the reply is a playlist', subject, 'Content-Type'),
      ),
  },
  {
    id: 'MEDIA_TYPE',
    clause: 'Apple HLS authoring 10.4',
    level: 'SHOULD',
    requirement:
      'The Content-Type of media is that of its format, such as video/mp2t or video/mp4.',
    effects: {},
    remedy: 'Map .ts to video/mp2t and .m4s to video/mp4 in the configuration of the server.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      const isMedia = isMediaRole(exchange.role) && isOk(reply)
      return unless(!isMedia || MEDIA_TYPE.test(mimeType(reply)), () =>
        headerEvidence('the reply is media', subject, 'Content-Type'),
      )
    },
  },
  readableByPages('CORS_PLAYLIST', 'Playlists', isPlaylistRole),
  readableByPages('CORS_MEDIA', 'Media', isMediaRole),
  {
    id: 'CORS_PREFLIGHT',
    clause: 'Fetch, CORS-preflight fetch',
    level: 'SHOULD',
    requirement: 'A preflight request allows the Range header to pages of every origin.',
    effects: everyPage(degrades('Cannot ask for byte ranges or with headers of its own.')),
    remedy: 'Answer OPTIONS with Access-Control-Allow-Headers: Range, or *.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      if (exchange.role !== 'preflight') return []
      if (reply.status >= 300) return [statusEvidence('the request is a preflight', subject)]
      const allowed = reply.headers['access-control-allow-headers']?.toLowerCase() ?? ''
      const hasRange = /(^|[\s,])(\*|range)(?=$|[\s,])/.test(allowed)
      return unless(hasRange && allowsOrigin(reply.headers), () =>
        headerEvidence('the preflight asks for Range', subject, 'Access-Control-Allow-Headers'),
      )
    },
  },
  {
    id: 'PLAYLIST_CACHED_TOO_LONG',
    clause: 'RFC 8216bis B.1',
    level: 'SHOULD',
    requirement: 'Caches keep a live playlist for half a target duration at most.',
    effects: everyPlayer(degrades('Sees new media late.')),
    remedy: 'Send Cache-Control: max-age of half a target duration with live playlists.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply, playlist } = subject
      const isPlain = exchange.role === 'playlist' && reply.status === 200
      if (!isPlain || playlist === undefined || playlist.ended) return []
      const limitSec = Math.max(1, playlist.targetSec / 2)
      const isTooLong = (['shared', 'browser'] as const).some(
        (cache) => (lifetimeSec(reply, cache) ?? 0) > limitSec,
      )
      return unless(!isTooLong, () =>
        headerEvidence(`TARGETDURATION is ${playlist.targetSec}`, subject, nameOfLifetime(subject)),
      )
    },
  },
  {
    id: 'BLOCKING_NOT_CACHED',
    clause: 'RFC 8216bis B.1',
    level: 'SHOULD',
    requirement: 'Shared caches keep the reply to a blocking request, which never changes.',
    effects: { apple: LOAD, hlsjs: LOAD },
    remedy:
      'Send Cache-Control: s-maxage of six target durations with replies to blocking requests.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      const isBlocking = exchange.role === 'blocking' && reply.status === 200
      return unless(!isBlocking || (lifetimeSec(reply) ?? 0) > 0, () =>
        headerEvidence('the URL names its part', subject, nameOfLifetime(subject)),
      )
    },
  },
  {
    id: 'MEDIA_NOT_CACHED',
    clause: 'RFC 8216bis B.1',
    level: 'SHOULD',
    requirement: 'Caches keep media for a target duration at least.',
    effects: everyPlayer(LOAD),
    remedy: 'Send Cache-Control: max-age of six target durations or more with media.',
    on: 'reply',
    check: (subject) => {
      const { exchange, reply, playlist } = subject
      const isMedia = isMediaRole(exchange.role) && isOk(reply)
      const limitSec = playlist?.targetSec ?? 0
      return unless(!isMedia || !((lifetimeSec(reply) ?? 0) < limitSec), () =>
        headerEvidence('the media never changes', subject, nameOfLifetime(subject)),
      )
    },
  },
]

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
    check: checkStatus('range', [206], 'the request is for the first 188 bytes'),
  },
  {
    id: 'HEAD_UNSUPPORTED',
    clause: 'RFC 9110 9.1',
    level: 'SHOULD',
    requirement: 'HEAD is answered like GET, without body.',
    effects: {},
    remedy: 'Support HEAD for media.',
    on: 'reply',
    check: checkStatus('head', [200, 206], 'the request is HEAD for a listed segment'),
  },
  {
    id: 'UNKNOWN_FOUND',
    clause: 'RFC 8216bis 6.2.6',
    level: 'SHOULD',
    requirement: 'A URI that was never listed is answered with 404.',
    effects: {},
    remedy: 'Answer 404 at once where the name is unknown.',
    on: 'reply',
    check: checkStatus('unknown', [403, 404, 410], 'no playlist lists this URI'),
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

/** Whether a response has the Content-Type of playlists, or is not a playlist. */
function hasPlaylistType({ exchange, reply }: ReplySubject): boolean {
  const isPlaylist = isPlaylistRole(exchange.role) && isOk(reply)
  return !isPlaylist || PLAYLIST_TYPES.has(mimeType(reply))
}

function hasPlaylistName({ reply }: ReplySubject): boolean {
  return /\.m3u8?\/*$/i.test(withoutQuery(reply.url))
}

function readableByPages(id: string, what: string, isOf: (role: RequestRole) => boolean): Rule {
  return {
    id,
    clause: 'Fetch, CORS protocol',
    level: 'SHOULD',
    requirement: `${what} can be read by pages of every origin.`,
    effects: everyPage(stops('Cannot read the reply in a page of another origin.')),
    remedy: `Send Access-Control-Allow-Origin: * with ${what.toLowerCase()}.`,
    on: 'reply',
    check: (subject) => {
      const { exchange, reply } = subject
      return unless(!isOf(exchange.role) || !isOk(reply) || allowsOrigin(reply.headers), () => {
        const claim = 'pages of other origins play the stream'
        return headerEvidence(claim, subject, 'Access-Control-Allow-Origin')
      })
    },
  }
}

function allowsOrigin(headers: Readonly<Record<string, string>>): boolean {
  return headers['access-control-allow-origin'] !== undefined
}

/** Header that states the lifetime of the response. */
function nameOfLifetime({ reply: { headers } }: ReplySubject): string {
  const isExpires = headers['cache-control'] === undefined && headers['expires'] !== undefined
  return isExpires ? 'Expires' : 'Cache-Control'
}
