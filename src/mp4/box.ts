/**
 * Boxes of ISO base media files (ISO/IEC 14496-12 4.2).
 *
 *   | size 32 | type 32 | payload … |
 *   | size 32 | type 32 | version 8 | flags 24 | payload … |    full box
 *
 * All boxes have 32-bit sizes.
 *
 * @module
 */
import { totalBytes } from '../binary/total-bytes.ts'

export const BOX_HEADER_BYTES = 8

/** @param type  four characters */
export function box(type: string, ...payload: readonly Uint8Array[]): Buffer {
  const sizeBytes = BOX_HEADER_BYTES + totalBytes(payload)
  return Buffer.concat([boxHeader(type, sizeBytes), ...payload], sizeBytes)
}

export function fullBox(
  type: string,
  version: number,
  flags: number,
  ...payload: readonly Uint8Array[]
): Buffer {
  return box(type, u8(version), u24(flags), ...payload)
}

/** @param sizeBytes  size of the box, header included */
export function boxHeader(type: string, sizeBytes: number): Buffer {
  return Buffer.concat([u32(sizeBytes), ascii(type)])
}

/** Text without a terminating zero. */
export function ascii(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

/** Unsigned integers of 8 bits each. Integers are stored modulo their size, so that no value throws. */
export function u8(...values: readonly number[]): Buffer {
  return Buffer.from(values)
}

export function u16(...values: readonly number[]): Buffer {
  return Buffer.from(values.flatMap((value) => [value >> 8, value]))
}

export function u24(value: number): Buffer {
  return Buffer.from([value >> 16, value >> 8, value])
}

/** Integers of 32 bits each, signed or unsigned. */
export function u32(...values: readonly number[]): Buffer {
  return u32Table(values)
}

/** Integers of 32 bits each, as many as a table may have: an argument each would take too much of the stack. */
export function u32Table(values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, index * 4)
  return bytes
}

/** @param value  0 to 2^53 - 1 */
export function u64(value: number): Buffer {
  return u32(Math.floor(value / 2 ** 32), value % 2 ** 32)
}
