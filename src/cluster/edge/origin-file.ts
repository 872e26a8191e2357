/**
 * Responses of the origin as files, or as refusals.
 *
 * @module
 */
import { gunzipSync } from 'node:zlib'
import type { StreamFile } from '../../playback/playback-source.ts'
import { isErrorCode, MillraceError } from '../../errors.ts'
import type { PlaylistPosition } from '../../hls/store/delivery-directives.ts'
import { blockingLimits } from '../../hls/store/stream-file.ts'
import type { NodeFileResponse } from './node-client.ts'

/** What an edge reads from a media playlist to answer requests that wait for media (RFC 8216bis 6.2.5). */
export interface PlaylistFacts {
  readonly targetDurationSec: number
  /** Whether the playlist has ended. */
  readonly ended: boolean
  /** Whether the playlist has delta updates. */
  readonly skippable: boolean
  /** Undefined for a playlist that does not offer to wait. */
  readonly position: PlaylistPosition | undefined
  /** Names of its parts, but for gaps. */
  readonly parts: ReadonlySet<string>
  /** Names of its init segments. */
  readonly maps: ReadonlySet<string>
}

/** Maximum size of a playlist. */
const MAX_PLAYLIST_BYTES = 16 * 1024 * 1024

/** Playlist of a response with status 200, and what an edge needs of its text. */
export function playlistOf(response: NodeFileResponse): { file: StreamFile; facts: PlaylistFacts } {
  const file = readFile(response)
  const facts = readPlaylist(file.chunks.join(''))
  const { position, targetDurationSec } = facts
  const blocking = position && { blocking: blockingLimits(targetDurationSec) }
  return { file: { ...file, ...blocking }, facts }
}

/**
 * File of a response.
 *
 * @throws {MillraceError} for a refusal
 */
export function fileOf(response: NodeFileResponse): StreamFile {
  const { location } = response.headers
  if (response.status === 302 && location !== undefined)
    return { ...readFile(response), chunks: [], location }
  if (response.status !== 200) throw refusalOf(response)
  const isPlaylist = response.headers['content-type'] === 'application/vnd.apple.mpegurl'
  return isPlaylist ? playlistOf(response).file : readFile(response)
}

/** Same bytes, same ETag, same lifetime. */
function readFile({ headers, bytes }: NodeFileResponse): StreamFile {
  const caching = headers['cache-control'] ?? ''
  const isGzip = headers['content-encoding'] === 'gzip'
  return {
    contentType: headers['content-type'] ?? 'application/octet-stream',
    version: (headers['etag'] ?? '').replace(/^(?:W\/)?"|(-gzip)?"$/g, ''),
    maxAgeSec: Number(/max-age=(\d{1,6})/.exec(caching)?.[1] ?? 0),
    immutable: caching.includes('immutable'),
    ...(isGzip ? { chunks: [gunzip(bytes)], gzip: [bytes] } : { chunks: [bytes] }),
  }
}

/** Refusal that a response passes on. */
export function refusalOf({ status, headers, bytes }: NodeFileResponse): MillraceError {
  const { code, error } = parseEnvelope(bytes)
  if (isErrorCode(code)) {
    const retryAfter = Number(headers['retry-after'])
    return new MillraceError(code, {
      ...(typeof error === 'string' && { message: error }),
      ...(retryAfter > 0 && { retryAfterSec: retryAfter }),
    })
  }
  return new MillraceError('ORIGIN_UNREACHABLE', { message: `the origin answered ${status}` })
}

/** Refusal after a request that has failed: the origin's own, or that it does not answer. */
export function originRefusal(error: unknown): MillraceError {
  return error instanceof MillraceError
    ? error
    : new MillraceError('ORIGIN_UNREACHABLE', { cause: error })
}

function parseEnvelope(bytes: Buffer): { code?: unknown; error?: unknown } {
  try {
    return (JSON.parse(bytes.toString()) ?? {}) as object
  } catch {
    return {}
  }
}

function gunzip(bytes: Buffer): Buffer {
  return gunzipSync(bytes, { maxOutputLength: MAX_PLAYLIST_BYTES })
}

const PART = /^#EXT-X-PART:(?!.*GAP=YES).*URI="([^"]+)"/gm
const MAP = /^#EXT-X-MAP:.*URI="([^"]+)"/gm

/** @param text  any playlist of Millrace; a multivariant playlist has neither position nor end */
export function readPlaylist(text: string): PlaylistFacts {
  const number = (tag: RegExp) => Number(tag.exec(text)?.[1] ?? NaN)
  const names = (tag: RegExp) => new Set(Array.from(text.matchAll(tag), ([, name]) => name!))
  const ended = /^#EXT-X-ENDLIST/m.test(text)
  return {
    targetDurationSec: number(/^#EXT-X-TARGETDURATION:(\d+)/m) || 1,
    ended,
    skippable: !ended && text.includes('CAN-SKIP-UNTIL='),
    position: text.includes('CAN-BLOCK-RELOAD=YES') ? readPosition(text) : undefined,
    parts: names(PART),
    maps: names(MAP),
  }
}

/** Names of the files that a playlist names, in lines of their own or in attributes. */
export function namesIn(text: string): ReadonlySet<string> {
  const names = text.matchAll(/URI="([^"]+)"|^([^#\s].*)$/gm)
  return new Set(Array.from(names, ([, inTag, inLine]) => (inTag ?? inLine)!))
}

function readPosition(text: string): PlaylistPosition | undefined {
  const hint = /^#EXT-X-PRELOAD-HINT:.*URI="([^"]+)"/m.exec(text)?.[1]
  const partTargetSec = Number(/PART-TARGET=([\d.]+)/.exec(text)?.[1])
  const first = Number(/^#EXT-X-MEDIA-SEQUENCE:(\d+)/m.exec(text)?.[1] ?? 0)
  if (hint === undefined || !(partTargetSec > 0)) return undefined
  // The parts of a segment come before its EXTINF.
  const bySegment = text.split(/^#EXTINF:/m).map((lines) => lines.match(/^#EXT-X-PART:/gm)?.length)
  return {
    mediaSequence: first + bySegment.length - 2,
    parts: bySegment.at(-2) ?? 0,
    nextParts: bySegment.at(-1) ?? 0,
    partTargetSec,
    hint,
    skippable: text.includes('CAN-SKIP-UNTIL='),
  }
}
