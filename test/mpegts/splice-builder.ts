/**
 * Builds splice information sections (ANSI/SCTE 35 9.6).
 *
 * @module
 */
import { crc32Mpeg2 } from '../../src/binary/crc32.ts'

export interface SpliceInsertFields {
  readonly eventId: number
  readonly canceled?: boolean
  /** Default true. */
  readonly out?: boolean
  /** Splice time; immediate without one. */
  readonly ptsTicks?: number | undefined
  readonly break?: { readonly durationTicks: number; readonly autoReturn: boolean } | undefined
}

export interface SegmentationFields {
  readonly eventId: number
  readonly canceled?: boolean
  readonly typeId?: number
  readonly durationTicks?: number | undefined
  readonly upid?: Uint8Array
}

export interface SpliceSectionOptions {
  readonly adjustmentTicks?: number
  readonly encrypted?: boolean
  readonly protocolVersion?: number
  /** Bytes of the descriptor loop. */
  readonly descriptors?: Uint8Array
  /** Writes splice_command_length FFF, unknown. */
  readonly unknownLength?: boolean
}

export function spliceSection(
  commandType: number,
  command: Uint8Array,
  options: SpliceSectionOptions = {},
): Buffer {
  const { adjustmentTicks = 0, descriptors = new Uint8Array(0) } = options
  const head = Buffer.alloc(14)
  head[0] = 0xfc
  head.writeUInt16BE(0x3000 | (11 + command.length + 2 + descriptors.length + 4), 1)
  head[3] = options.protocolVersion ?? 0
  head[4] = (options.encrypted === true ? 0x80 : 0) | Math.floor(adjustmentTicks / 2 ** 32)
  head.writeUInt32BE(adjustmentTicks % 2 ** 32, 5)
  head.writeUInt16BE(0xfff0, 10)
  head.writeUInt16BE(0xf000 | (options.unknownLength === true ? 0xfff : command.length), 11)
  head[13] = commandType
  const loopLength = Buffer.alloc(2)
  loopLength.writeUInt16BE(descriptors.length)
  const section = Buffer.concat([head, command, loopLength, descriptors, Buffer.alloc(4)])
  section.writeUInt32BE(crc32Mpeg2(section.subarray(0, -4)), section.length - 4)
  return section
}

export function spliceInsert(fields: SpliceInsertFields, options?: SpliceSectionOptions): Buffer {
  const { eventId, canceled = false, out = true, ptsTicks } = fields
  const id = Buffer.alloc(4)
  id.writeUInt32BE(eventId)
  if (canceled) return spliceSection(5, Buffer.concat([id, Buffer.from([0xff])]), options)
  const flags =
    (out ? 0x80 : 0) |
    0x40 |
    (fields.break === undefined ? 0 : 0x20) |
    (ptsTicks === undefined ? 0x10 : 0) |
    0x0f
  const command = [
    ...[id, Buffer.from([0x7f, flags])],
    ...(ptsTicks === undefined ? [] : [ticksBytes(0xfe, ptsTicks)]),
    ...(fields.break === undefined
      ? []
      : [ticksBytes(fields.break.autoReturn ? 0xfe : 0x7e, fields.break.durationTicks)]),
    Buffer.from([0, 1, 0, 0]),
  ]
  return spliceSection(5, Buffer.concat(command), options)
}

/** @param ptsTicks  splice time; immediate without one */
export function timeSignal(
  ptsTicks: number | undefined,
  segmentations: readonly SegmentationFields[],
  options?: SpliceSectionOptions,
): Buffer {
  const command = ptsTicks === undefined ? Buffer.from([0x7f]) : ticksBytes(0xfe, ptsTicks)
  const descriptors = Buffer.concat(segmentations.map(segmentationDescriptor))
  return spliceSection(6, command, { descriptors, ...options })
}

export function segmentationDescriptor(fields: SegmentationFields): Buffer {
  const { eventId, typeId = 0x34, durationTicks, upid = new Uint8Array(0) } = fields
  const head = Buffer.alloc(9, 'CUEI')
  head.writeUInt32BE(eventId, 4)
  head[8] = fields.canceled === true ? 0xff : 0x7f
  if (fields.canceled === true) return descriptor(head)
  const duration = Buffer.alloc(durationTicks === undefined ? 0 : 5)
  if (durationTicks !== undefined) duration.writeUIntBE(durationTicks, 0, 5)
  const flags = durationTicks === undefined ? 0xbf : 0xff
  const upidHead = [upid.length === 0 ? 0 : 0x0c, upid.length]
  return descriptor(
    Buffer.concat([
      ...[head, Buffer.from([flags]), duration, Buffer.from(upidHead), upid],
      Buffer.from([typeId, 1, 1]),
    ]),
  )
}

function descriptor(data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x02, data.length]), data])
}

/** @param first  seven bits of flags; the last is bit 32 of the ticks */
function ticksBytes(first: number, ticks: number): Buffer {
  const bytes = Buffer.alloc(5)
  const wrapped = ((ticks % 2 ** 33) + 2 ** 33) % 2 ** 33
  bytes[0] = first | Math.floor(wrapped / 2 ** 32)
  bytes.writeUInt32BE(wrapped % 2 ** 32, 1)
  return bytes
}
