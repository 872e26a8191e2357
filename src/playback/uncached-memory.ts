/**
 * Memory of reply bodies that have left the cache. Cached bodies need no extra memory.
 *
 * @module
 */
import { borrowFile, type PlaybackSource } from './playback-source.ts'
import type { UncachedMemory } from '../http/guard/held-memory.ts'

/** Stream id and file name: the last two parts of the path, after any prefix. */
const FILE = /\/([^/?]+)\/([^/?]+)(?:\?|$)/

/** For the guard: bodies of playback are views into cached files, whose names are in the URL. */
export function uncachedMemoryBeside(findStream: PlaybackSource['findStream']): UncachedMemory {
  return (url, bodies) => {
    const [, streamId, name] = FILE.exec(url) ?? []
    const stream = streamId === undefined ? undefined : findStream(streamId)
    const loan = name === undefined || bodies.length === 0 ? undefined : borrowFile(stream, name)
    const cached = new Set(loan?.file.chunks.map(({ buffer }) => buffer))
    loan?.end?.()
    return bodies.map(({ buffer }) => buffer).filter((memory) => !cached.has(memory))
  }
}
