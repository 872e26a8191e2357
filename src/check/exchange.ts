/**
 * HTTP requests of a check with their responses: all that the judge sees, live or from a record.
 *
 * @module
 */

/**
 * Purposes of requests.
 *
 * - `multivariant`, `playlist`: reloads; `blocking`: a playlist with `_HLS_msn`; `delta`: with `_HLS_skip`.
 * - `segment`, `part`, `init`: media as listed, `init` for EXT-X-MAP; `hint`: the part of EXT-X-PRELOAD-HINT.
 * - the rest are probes, sent a few times a check:
 *   `gone`: media that has left the playlist, within the time that it must stay available;
 *   `head`, `range`, `preflight`: of a listed segment; `gzip`: a playlist, asked for with `Accept-Encoding: gzip`;
 *   `identity`: a playlist, asked for without any coding;
 *   `part-without-sequence`, `far-ahead`: directives that have to be refused;
 *   `old-sequence`: a blocking request for a segment that is listed long since; `unknown`: a URI that was never listed.
 */
export const ROLES = [
  'multivariant',
  'playlist',
  'blocking',
  'delta',
  'segment',
  'part',
  'init',
  'hint',
  'gone',
  'head',
  'range',
  'preflight',
  'gzip',
  'identity',
  'part-without-sequence',
  'far-ahead',
  'old-sequence',
  'unknown',
] as const

/** Purpose of a request, see `Exchange`. */
export type RequestRole = (typeof ROLES)[number]

const MEDIA_ROLES: ReadonlySet<RequestRole> = new Set(['segment', 'part', 'init'])

/** Whether a request may be held until the playlist has something new. */
export function isBlocking(role: RequestRole): boolean {
  return role === 'blocking' || role === 'delta'
}

/** Whether a request reloads a media playlist. */
export function isReload(role: RequestRole): boolean {
  return role === 'playlist' || isBlocking(role)
}

/** Whether a request is for a playlist, and no probe. */
export function isPlaylistRole(role: RequestRole): boolean {
  return role === 'multivariant' || isReload(role)
}

/** Whether a request is for media as listed. */
export function isMediaRole(role: RequestRole): boolean {
  return MEDIA_ROLES.has(role)
}

/** Whether a response has the resource, or the range of it that was asked for. */
export function isOk({ status }: Reply): boolean {
  return status === 200 || status === 206
}

/** Whether a response is a web page, whose URL users give in place of that of a playlist. */
export function isWebPage({ reply }: Exchange): boolean {
  if (reply === undefined || !isOk(reply)) return false
  return /^\s*<(?:!doctype html|html|head|!--)/i.test(reply.body.toString('latin1', 0, 1000))
}

/** A request with its response, or the reason why there is none. */
export interface Exchange {
  readonly role: RequestRole
  readonly method: 'GET' | 'HEAD' | 'OPTIONS'
  /** Absolute, without credentials. */
  readonly url: string
  /** URL of the media playlist that led to the request; undefined for playlists named by the multivariant one or the user. */
  readonly playlistUrl?: string
  /** Request headers that matter to rules, names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds since 1970, on a clock that does not jump during the check. */
  readonly sentAtMs: number
  /** Response; undefined where no whole one arrived: then `failure` says why. */
  readonly reply?: Reply
  /** Sentence without URL: `the connection was refused`, `no reply within 10 s`, `larger than 64 MiB`. */
  readonly failure?: string
}

/** A response. */
export interface Reply {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** URL after redirects. */
  readonly url: string
  /** Protocol agreed on for the connection, by ALPN; `http/1.1` without TLS. */
  readonly protocol: 'http/1.1' | 'h2'
  /** Decoded from its Content-Encoding. */
  readonly body: Buffer
  /** Bytes of the body before decoding, where known. */
  readonly encodedBytes?: number
  /** Times of the end of the headers and of the body, on the clock of `sentAtMs`. */
  readonly headersAtMs: number
  readonly endedAtMs: number
  /** Longest pause between two reads of the body. */
  readonly longestPauseMs: number
}
