/**
 * Byte stream format of H.264 and H.265 (Annex B of both): NAL units separated by start codes.
 *
 *   | 00 | 00 | 01 | header (1 byte in H.264, 2 in H.265) | payload … |
 *
 * @module
 */

/** Start code of the byte stream (H.264 B.1.1, H.265 B.2.1). */
export const START_CODE: Uint8Array = Uint8Array.of(0, 0, 1)

const NO_BYTES = new Uint8Array(0)

/** More zero bytes in a row are in no NAL unit (H.264 7.4.1). */
const MAX_ZEROS = 2

/**
 * Maximum number of NAL units read of an access unit. Levels allow up to 1152 slices at 30 frames a second (H.264 A.3.3,
 * level 5.1) and 600 (H.265 Table A.8); slices as long as an Ethernet frame come to 6 MB.
 */
export const MAX_NAL_UNITS = 4096

/** Maximum number of bytes copied of a parameter set or SEI NAL unit; most are much shorter. */
export const MAX_HEAD_BYTES = 4096

/** @returns offset of the first start code at or after `from`; -1 without one */
export function findStartCode(bytes: Uint8Array, from: number): number {
  // No start code ends in the two bytes behind a 1.
  for (let at = bytes.indexOf(1, from + 2); at !== -1; at = bytes.indexOf(1, at + 3)) {
    if (bytes[at - 1] === 0 && bytes[at - 2] === 0) return at - 2
  }
  return -1
}

/**
 * Yields the first bytes of each NAL unit that `bytesWanted` does not skip. Callers stop at the first coded slice, so
 * most of an access unit is never read.
 *
 * @param bytes  the access unit
 * @param bytesWanted  number of bytes of a NAL unit, by its first byte; 0 skips it
 * @returns views that start with the NAL header; shorter than wanted when the NAL unit is shorter, never empty
 */
export function* nalHeads(
  bytes: Buffer,
  bytesWanted: (header: number) => number,
): Generator<Buffer, void, undefined> {
  for (let at = findStartCode(bytes, 0); at !== -1; at = findStartCode(bytes, at + 3)) {
    const begin = at + START_CODE.length
    const wanted = begin === bytes.length ? 0 : bytesWanted(bytes[begin]!)
    if (wanted === 0) continue
    const rest = bytes.subarray(begin, begin + wanted + START_CODE.length - 1)
    const end = findStartCode(rest, 0)
    const head = rest.subarray(0, end === -1 ? wanted : end)
    const nal = head.length < wanted ? withoutTrailingZeros(head) : head
    if (nal.length > 0) yield nal
  }
}

/**
 * Splits an access unit into its NAL units, without start codes and the zero bytes around them.
 *
 * @param chunks  the access unit in any pieces; bytes before the first start code are skipped
 * @param stats  counts the bytes that could end a start code
 * @returns views into the chunks, for each NAL unit one or more that are not empty; empty NAL units are skipped; at last
 *   the bytes at the end that belong to none: a start code, or zero bytes, which do if the NAL unit goes on
 */
export function* nalUnits(
  chunks: Iterable<Uint8Array>,
  stats = { candidates: 0 },
): Generator<readonly Uint8Array[], Uint8Array, undefined> {
  let pieces: Uint8Array[] | undefined
  // The two bytes before the chunk.
  let last = 1
  let beforeLast = 1
  for (const chunk of chunks) {
    let start = 0
    // No start code ends in the two bytes behind a 1.
    for (let at = chunk.indexOf(1); at !== -1; at = chunk.indexOf(1, at + 3)) {
      stats.candidates++
      if ((at > 0 ? chunk[at - 1] : last) !== 0) continue
      if ((at > 1 ? chunk[at - 2] : at === 1 ? last : beforeLast) !== 0) continue
      if (at > start) pieces?.push(chunk.subarray(start, at))
      if (pieces !== undefined) trimZeros(pieces)
      if (pieces !== undefined && pieces.length > 0) yield pieces
      pieces = []
      start = at + 1
    }
    if (start < chunk.length) pieces?.push(start === 0 ? chunk : chunk.subarray(start))
    if (chunk.length > 0) {
      beforeLast = chunk.length > 1 ? chunk[chunk.length - 2]! : last
      last = chunk[chunk.length - 1]!
    }
  }
  if (pieces === undefined) return NO_BYTES
  if (pieces.length === 0) return START_CODE
  const zeros = trimZeros(pieces)
  if (pieces.length > 0) yield pieces
  return zeros === 0 ? NO_BYTES : new Uint8Array(Math.min(zeros, MAX_ZEROS))
}

/** Removes zero bytes at the end of a NAL unit. @returns their number */
function trimZeros(pieces: Uint8Array[]): number {
  let zeros = 0
  for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) {
    let end = piece.length
    while (end > 0 && piece[end - 1] === 0) end--
    zeros += piece.length - end
    if (end === 0) continue
    pieces.push(end === piece.length ? piece : piece.subarray(0, end))
    break
  }
  return zeros
}

/** Removes zero bytes of the next start code: a NAL unit never ends in a zero byte (H.264 7.4.1). */
function withoutTrailingZeros(bytes: Buffer): Buffer {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return bytes.subarray(0, end)
}

/** Removes the emulation prevention bytes, the 03 of every 00 00 03 (H.264 7.3.1, H.265 7.3.1.1). */
export function unescapeNal(nal: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(nal.length)
  let length = 0
  let zeros = 0
  for (let at = 0; at < nal.length; at++) {
    const byte = nal[at]!
    if (byte === 3 && zeros >= 2) {
      zeros = 0
      continue
    }
    zeros = byte === 0 ? zeros + 1 : 0
    bytes[length++] = byte
  }
  return bytes.subarray(0, length)
}
