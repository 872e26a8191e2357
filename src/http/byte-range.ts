/**
 * The Range header with one range of bytes (RFC 9110 section 14.1.2): `bytes=0-99`, `bytes=100-`, `bytes=-100`.
 *
 * @module
 */

/** Both ends inclusive, within the file. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/**
 * @param header  as sent
 * @param sizeBytes  of the file
 * @returns undefined where the header is to be ignored: other units, several ranges, not a range at all
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

/** @returns the bytes of the range: views */
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
