/**
 * Delivery directives in the query of a playlist request (RFC 8216bis 6.2.5).
 *
 * @module
 */
import type { IncomingHttpHeaders } from 'node:http'
import { parse } from 'node:querystring'
import type { DeliveryDirectives, PlayableStream } from './playback-source.ts'
import { MillraceError } from '../errors.ts'
import { isPlaylistUri } from '../hls/file-names.ts'

/** Values of `_HLS_skip`; `v2` allows a server to skip date ranges too, which we do not. */
const SKIP_VALUES: ReadonlySet<unknown> = new Set(['YES', 'v2'])

/**
 * Directives of a request for a file; a playlist that does not offer to wait has at most a delta update.
 *
 * @returns `DIRECTIVES_INVALID` for a number that is none, and for a part without its segment
 */
export function readDirectives(
  {
    url = '',
    headers,
  }: { readonly url?: string | undefined; readonly headers: IncomingHttpHeaders },
  { files }: PlayableStream,
  name: string,
): DeliveryDirectives | MillraceError {
  if (!isPlaylistUri(name)) return NONE
  const otherThan = versionToReplace(headers)
  if (otherThan !== undefined) return { otherThan }
  // Most URLs have none.
  if (!url.includes('_HLS_')) return NONE
  const query = parse(url.slice(url.indexOf('?') + 1))
  const playlist = files.get(name)
  const isOffered = playlist === undefined || playlist.blocking !== undefined
  return isOffered ? parseDirectives(query) : { skip: isSkip(query) }
}

const NONE: DeliveryDirectives = {}

/** @param query  other parameters are ignored */
function parseDirectives(
  query: Readonly<Record<string, unknown>>,
): DeliveryDirectives | MillraceError {
  const mediaSequence = parseNumber(query['_HLS_msn'])
  const part = parseNumber(query['_HLS_part'])
  if (Number.isNaN(mediaSequence)) return invalid('_HLS_msn must be one whole number')
  if (Number.isNaN(part)) return invalid('_HLS_part must be one whole number')
  if (part !== undefined && mediaSequence === undefined) {
    return invalid('_HLS_part requires _HLS_msn')
  }
  return { mediaSequence, part, skip: isSkip(query) }
}

function isSkip(query: Readonly<Record<string, unknown>>): boolean {
  return SKIP_VALUES.has(query['_HLS_skip'])
}

/**
 * Version of a playlist that the client has, if it asks to wait for another: `If-None-Match` with one tag, and
 * `Prefer: wait` (RFC 7240 section 4.3). Edges follow playlists so.
 */
function versionToReplace(headers: IncomingHttpHeaders): string | undefined {
  const { prefer, 'if-none-match': tag } = headers
  if (prefer === undefined || tag === undefined || !/(?:^|,)\s*wait=/.test(String(prefer))) {
    return undefined
  }
  return /^"([^"]+?)(?:-gzip|-br)?"$/.exec(tag)?.[1]
}

/** @param text  an array for a repeated parameter */
function parseNumber(text: unknown): number | undefined {
  if (text === undefined) return undefined
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : NaN
}

function invalid(message: string): MillraceError {
  return new MillraceError('DIRECTIVES_INVALID', { message })
}
