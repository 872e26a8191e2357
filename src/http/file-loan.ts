/**
 * Files of a stream for the time of a reply.
 *
 * @module
 */
import type { FileLoan, PlayableStream } from '../contract/streams.ts'

/** A file of a stream of whatever make; undefined where there is none. */
export function borrowFile(stream: PlayableStream | undefined, name: string): FileLoan | undefined {
  const files = stream?.files
  if (files?.lend !== undefined) return files.lend(name)
  const file = files?.get(name)
  return file && { file, end: undefined }
}
