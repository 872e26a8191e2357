/**
 * Loan of a stream's file for the duration of a reply.
 *
 * @module
 */
import type { DeliveryDirectives, FileLoan, PlayableStream } from '../contract/streams.ts'

/** Name of the newest key frame of a stream, see `hls/file-names.ts`. */
export const PREVIEW_URI = 'preview.ts'

/** Borrows a file, also from a stream whose `files` have no `lend`; undefined if the file does not exist. */
export function borrowFile(
  stream: PlayableStream | undefined,
  name: string,
  directives?: DeliveryDirectives,
): FileLoan | undefined {
  const files = stream?.files
  if (files?.lend !== undefined) return files.lend(name, directives)
  const file = files?.get(name, directives)
  return file && { file, end: undefined }
}
