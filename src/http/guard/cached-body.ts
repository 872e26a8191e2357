/**
 * Memory of reply bodies that have left the cache. Cached bodies need no extra memory.
 *
 * @module
 */
import type { PlaybackSource } from '../../contract/streams.ts'
import { borrowFile } from '../file-loan.ts'

/** Stream id and file name: the last two parts of the path, after any prefix. */
const FILE = /\/([^/?]+)\/([^/?]+)(?:\?|$)/

/**
 * @param url  URL of the request, whose file the bodies may be views into
 * @returns memory of the bodies that are not in the cache
 */
export function uncachedMemory(
  source: PlaybackSource,
  url: string,
  bodies: readonly Buffer[],
): ArrayBufferLike[] {
  const [, streamId, name] = FILE.exec(url) ?? []
  const stream = streamId === undefined ? undefined : source.findStream(streamId)
  const loan = name === undefined || bodies.length === 0 ? undefined : borrowFile(stream, name)
  const cached = new Set(loan?.file.chunks.map(({ buffer }) => buffer))
  loan?.end?.()
  return bodies.map(({ buffer }) => buffer).filter((memory) => !cached.has(memory))
}
