/**
 * Byte ranges of resources: EXT-X-BYTERANGE, and BYTERANGE of parts and init segments (RFC 8216bis 4.4.4.2).
 *
 * @module
 */

export interface ByteRange {
  readonly first: number
  /** Exclusive. */
  readonly end: number
}

/** @returns `<n>[@<o>]`; undefined if absent or malformed */
export function readRange(text: string | undefined, previousEnd: number): ByteRange | undefined {
  const match = /^(\d+)(?:@(\d+))?$/.exec(text ?? '')
  if (match === null) return undefined
  const first = match[2] === undefined ? previousEnd : Number(match[2])
  return { first, end: first + Number(match[1]) }
}

/** @returns name of a resource or of a byte range of it */
export function formatPlace(url: string, range: string | undefined): string {
  return range === undefined ? url : `${url} ${range}`
}

/** @returns value of a Range header */
export function formatRange({ first, end }: ByteRange): string {
  return `bytes=${first}-${end - 1}`
}
