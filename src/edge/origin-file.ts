/**
 * Replies of the origin as files, or as refusals.
 *
 * @module
 */
import { gunzipSync } from 'node:zlib'
import type { StreamFile } from '../contract/streams.ts'
import { isErrorCode, MillraceError } from '../errors.ts'
import { blockingLimits } from '../hls/store/stream-file.ts'
import type { FileReply } from './node-client.ts'
import { readPlaylist, type PlaylistFacts } from './playlist-facts.ts'

/** Maximum size of a playlist. */
const MAX_PLAYLIST_BYTES = 16 * 1024 * 1024

/** Playlist of a reply with status 200, and what it says. */
export function playlistOf(reply: FileReply): { file: StreamFile; facts: PlaylistFacts } {
  const file = readFile(reply)
  const facts = readPlaylist(file.chunks.join(''))
  const { position, targetDurationSec } = facts
  const blocking = position && { blocking: blockingLimits(targetDurationSec) }
  return { file: { ...file, ...blocking }, facts }
}

/** File of a reply with status 200. */
export function fileOf(reply: FileReply): StreamFile {
  const isPlaylist = reply.headers['content-type'] === 'application/vnd.apple.mpegurl'
  return isPlaylist ? playlistOf(reply).file : readFile(reply)
}

/** Same bytes, same ETag, same lifetime. */
function readFile({ headers, bytes }: FileReply): StreamFile {
  const caching = headers['cache-control'] ?? ''
  const isGzip = headers['content-encoding'] === 'gzip'
  return {
    contentType: headers['content-type'] ?? 'application/octet-stream',
    version: (headers['etag'] ?? '').replace(/^(?:W\/)?"|(-gzip)?"$/g, ''),
    maxAgeSec: Number(/max-age=(\d{1,9})/.exec(caching)?.[1] ?? 0),
    immutable: caching.includes('immutable'),
    ...(isGzip ? { chunks: [gunzip(bytes)], gzip: [bytes] } : { chunks: [bytes] }),
  }
}

/** Refusal that a reply passes on. */
export function refusalOf({ status, headers, bytes }: FileReply): MillraceError {
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
export function asRefusal(error: unknown): MillraceError {
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
