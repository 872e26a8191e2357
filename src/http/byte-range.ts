/**
 * Range header with one byte range (RFC 9110 section 14.1.2): `bytes=0-99`, `bytes=100-`, `bytes=-100`.
 *
 * @module
 */

/** First and last byte, inclusive, within the file. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/**
 * Parses a Range header.
 *
 * @param sizeBytes  size of the file
 * @returns undefined for a header to ignore: another range unit, several ranges, or a malformed range; `unsatisfiable`
 *   when the range has no byte of the file
 */
export function parseByteRange(
  header: string,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/i.exec(header) ?? []
  if (from === '' && to === '') return undefined
  const first = from === '' ? Math.max(0, sizeBytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? Infinity : Number(to)
  if (last < first) return undefined
  return first < sizeBytes ? { first, last: Math.min(last, sizeBytes - 1) } : 'unsatisfiable'
}

/** @returns views of the bytes in the range */
export function sliceChunks(chunks: readonly Buffer[], { first, last }: ByteRange): Buffer[] {
  const slices: Buffer[] = []
  let start = 0
  for (const chunk of chunks) {
    const slice = chunk.subarray(Math.max(0, first - start), Math.max(0, last + 1 - start))
    if (slice.length > 0) slices.push(slice)
    start += chunk.length
  }
  return slices
}
