/**
 * Which bodies of a reply are a file that is still to be had, and so cost no memory of their own.
 *
 * @module
 */
import type { PlaybackSource } from '../../contract/streams.ts'

/** The last two parts of the path, whatever stands before them. */
const FILE = /\/([^/?]+)\/([^/?]+)(?:\?|$)/

/**
 * @param url  of the request
 * @returns the memory of those that are not
 */
export function uncachedMemory(
  source: PlaybackSource,
  url: string,
  bodies: readonly Buffer[],
): ArrayBufferLike[] {
  const [, streamId, name] = FILE.exec(url) ?? []
  const stream = streamId === undefined ? undefined : source.findStream(streamId)
  const file = name === undefined || bodies.length === 0 ? undefined : stream?.files.get(name)
  const cached = new Set(file?.chunks.map(({ buffer }) => buffer))
  return bodies.map(({ buffer }) => buffer).filter((memory) => !cached.has(memory))
}
