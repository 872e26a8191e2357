/**
 * Id of a stream: safe in a URL path and a file name, and so short that its stream key fits an SRT StreamID.
 *
 * @module
 */

export const MAX_STREAM_ID_CHARACTERS = 128

export const STREAM_ID = new RegExp(`^(?!\\.)[A-Za-z0-9._~-]{1,${MAX_STREAM_ID_CHARACTERS}}$`)

/** For error messages, after the name of the field. */
export const STREAM_ID_ALLOWED = `must be 1 to ${MAX_STREAM_ID_CHARACTERS} characters of A-Z a-z 0-9 . _ ~ - and not start with a dot`

export function isStreamId(id: unknown): id is string {
  return typeof id === 'string' && STREAM_ID.test(id)
}
