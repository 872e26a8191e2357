/**
 * Loan of a stream's file for the duration of a reply.
 *
 * @module
 */
import type { FileLoan, PlayableStream } from '../contract/streams.ts'

/** Borrows a file, from a stream of any implementation; undefined where the file does not exist. */
export function borrowFile(stream: PlayableStream | undefined, name: string): FileLoan | undefined {
  const files = stream?.files
  if (files?.lend !== undefined) return files.lend(name)
  const file = files?.get(name)
  return file && { file, end: undefined }
}
