/**
 * Boxes of ISO base media files (ISO/IEC 14496-12 4.2), read within the bounds of their parents.
 *
 *   | size 32 | type 32 | large size 64 if size is 1 | payload … |
 *
 * Size 0 extends a box to the end of its parent.
 *
 * @module
 */
import type { Faults } from './media-facts.ts'

export interface Box {
  readonly type: string
  /** Offset of the box, of its payload, and of its end, in the bytes. */
  readonly at: number
  readonly start: number
  readonly end: number
}

const HEADER_BYTES = 8
const LARGE_HEADER_BYTES = 16

/** Maximum number of boxes that are read of one parent. */
const MAX_BOXES = 10_000

/** @returns boxes in a range, up to the first that does not fit */
export function readBoxes(
  bytes: Buffer,
  { start, end }: Pick<Box, 'start' | 'end'>,
  faults: Faults,
): readonly Box[] {
  const boxes: Box[] = []
  let at = start
  while (at + HEADER_BYTES <= end && boxes.length < MAX_BOXES) {
    const type = bytes.toString('latin1', at + 4, at + HEADER_BYTES)
    const size = bytes.readUInt32BE(at)
    const isLarge = size === 1
    const headerBytes = isLarge ? LARGE_HEADER_BYTES : HEADER_BYTES
    if (at + headerBytes > end) break
    const declared = isLarge ? Number(bytes.readBigUInt64BE(at + HEADER_BYTES)) : size
    const sizeBytes = size === 0 ? end - at : declared
    if (sizeBytes < headerBytes || at + sizeBytes > end) {
      const limit = `${end - at} bytes are left`
      faults.add('box', `box ${printable(type)} at byte ${at} has ${sizeBytes} bytes, ${limit}`)
      return boxes
    }
    boxes.push({ type, at, start: at + headerBytes, end: at + sizeBytes })
    at += sizeBytes
  }
  if (at < end && boxes.length < MAX_BOXES) {
    faults.add('box', `${end - at} bytes at byte ${at} are no box`)
  }
  return boxes
}

export function findBox(boxes: readonly Box[], type: string): Box | undefined {
  return boxes.find((box) => box.type === type)
}

/** Type for messages: the network chose it. */
function printable(type: string): string {
  return JSON.stringify(type.replaceAll(/[^\x20-\x7e]/g, '?'))
}

/** Reader of the fields of a box. Bytes past its end read as 0 and set `overrun`. */
export class FieldReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  #overrun = false

  constructor(bytes: Buffer, { start, end }: Pick<Box, 'start' | 'end'>) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  get overrun(): boolean {
    return this.#overrun
  }

  get position(): number {
    return this.#at
  }

  get left(): number {
    return this.#end - this.#at
  }

  /** @param count  number of bytes, 1 to 4 */
  unsigned(count: number): number {
    const at = this.#at
    this.skip(count)
    return this.#overrun ? 0 : this.#bytes.readUIntBE(at, count)
  }

  signed32(): number {
    return this.unsigned(4) | 0
  }

  unsigned64(): number {
    return this.unsigned(4) * 2 ** 32 + this.unsigned(4)
  }

  skip(count: number): void {
    this.#at += count
    if (this.#at > this.#end) {
      this.#at = this.#end
      this.#overrun = true
    }
  }

  /** @returns view of the next bytes; empty, with `overrun` set, if fewer are left */
  take(count: number): Buffer {
    const at = this.#at
    this.skip(count)
    return this.#overrun ? this.#bytes.subarray(0, 0) : this.#bytes.subarray(at, at + count)
  }
}
