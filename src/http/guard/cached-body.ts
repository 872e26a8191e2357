/**
 * Whether the body of a reply is a file that is still to be had, and so costs no memory of its own.
 *
 * @module
 */
import type { PlaybackSource } from '../types.ts'

/** The last two parts of the path, whatever stands before them. */
const FILE = /\/([^/?]+)\/([^/?]+)(?:\?|$)/

/** @param url  of the request */
export function isCachedBody(source: PlaybackSource, url: string, body: Buffer): boolean {
  const [, streamId, name] = FILE.exec(url) ?? []
  if (streamId === undefined || name === undefined) return false
  return source.findStream(streamId)?.file(name)?.bytes.buffer === body.buffer
}
