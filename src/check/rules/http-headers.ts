/**
 * Rules on headers of replies: types, CORS and caching.
 *
 * @module
 */
import type { Role } from '../exchange.ts'
import { degrades, everyPage, everyPlayer, stops, unless } from './evidence.ts'
import {
  headerEvidence,
  isMediaRole,
  isOk,
  isPlaylistRole,
  lifetimeSec,
  mimeType,
  statusEvidence,
  withoutQuery,
  type ReplySubject,
} from './http-replies.ts'
import type { Rule } from './rule.ts'

const PLAYLIST_TYPES = new Set(['application/vnd.apple.mpegurl', 'audio/mpegurl'])

/** Types of segments in use; `application/octet-stream` says nothing, and every player ignores it. */
const MEDIA_TYPE =
  /^(video\/(mp2t|mp4|iso\.segment)|audio\/(mp2t|mp4|aac|aacp|x-aac|mpeg|ac3|eac3|iso\.segment)|application\/(mp4|octet-stream)|binary\/octet-stream|text\/vtt)$/

const LOAD = degrades('Waits for the origin server where a cache could answer.')

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

/** Whether a reply has the Content-Type of playlists, or is none. */
function hasPlaylistType({ exchange, reply }: ReplySubject): boolean {
  const isPlaylist = isPlaylistRole(exchange.role) && isOk(reply)
  return !isPlaylist || PLAYLIST_TYPES.has(mimeType(reply))
}

function hasPlaylistName({ reply }: ReplySubject): boolean {
  return /\.m3u8?\/*$/i.test(withoutQuery(reply.url))
}

function readableByPages(id: string, what: string, isOf: (role: Role) => boolean): Rule {
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

/** Header that states the lifetime of the reply. */
function nameOfLifetime({ reply: { headers } }: ReplySubject): string {
  const isExpires = headers['cache-control'] === undefined && headers['expires'] !== undefined
  return isExpires ? 'Expires' : 'Cache-Control'
}
