/**
 * Size of bytes in several chunks.
 *
 * @module
 */

/** Sum of the lengths. */
export function totalBytes(chunks: readonly { readonly length: number }[]): number {
  let bytes = 0
  for (const { length } of chunks) bytes += length
  return bytes
}
