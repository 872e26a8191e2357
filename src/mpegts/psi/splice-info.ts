/**
 * Splice information: points at which a splicer may leave a program, for example for an advertisement, and return to it
 * (ANSI/SCTE 35 9.6).
 *
 *   | table id FC 8 | 0 | 0 | SAP type 2 | section length 12 | protocol version 8 |
 *   | encrypted 1 | encryption algorithm 6 | PTS adjustment 33 | CW index 8 | tier 12 |
 *   | command length 12 | command type 8 | command … | descriptor loop length 16 | descriptors … | CRC 32 |
 *
 * splice_time() (9.8.1):
 *
 *   | specified 1 | reserved 6 | PTS 33 |   or   | 0 | reserved 7 |
 *
 * @module
 */
import { BitReader } from '../../binary/bit-reader.ts'
import { TIME_MODULUS } from '../timestamps.ts'
import { decodeSegmentations, type Segmentation } from './segmentation-descriptor.ts'

/** A splice information section (SCTE 35 9.6). */
export interface SpliceInfo {
  /** The section as sent, CRC_32 included. */
  readonly section: Buffer
  /**
   * Splice time, `pts_adjustment` added, 90 kHz: modulo 2^33 in the result of `decodeSpliceInfo`, unwrapped in the
   * output of the demuxer. Undefined for an immediate splice and for a command without a time.
   */
  readonly ptsTicks?: number
  readonly command: SpliceCommand
}

/**
 * - `splice-null`: heartbeat.
 * - `time-signal`: starts and ends of segmentation events; none when the section has only other descriptors.
 * - `other`: splice_schedule, bandwidth_reservation, private_command, or a reserved type.
 */
export type SpliceCommand =
  | { readonly type: 'splice-null' }
  | SpliceInsert
  | { readonly type: 'time-signal'; readonly segmentations: readonly Segmentation[] }
  | { readonly type: 'other'; readonly commandType: number }

/** splice_insert() (9.7.3) */
export interface SpliceInsert {
  readonly type: 'splice-insert'
  /** `splice_event_id`; the same for the exit from the program and the return to it. */
  readonly eventId: number
  /** Whether the section cancels the event with this id; the other fields then have no meaning. */
  readonly canceled: boolean
  /** True for the exit from the program, false for the return to it. */
  readonly outOfNetwork: boolean
  readonly break?: {
    /** 90 kHz. */
    readonly durationTicks: number
    /** Whether the break ends after its duration without another splice_insert(). */
    readonly autoReturn: boolean
  }
}

export const SPLICE_INFO_TABLE_ID = 0xfc

/** Size of the section header up to and including splice_command_type. */
const HEADER_BYTES = 14
const CRC_BYTES = 4
const MIN_BYTES = HEADER_BYTES + 2 + CRC_BYTES

/** Value of splice_command_length in sections of senders that are older than the field. */
const UNKNOWN_LENGTH = 0xfff

const CommandType = { NULL: 0x00, INSERT: 0x05, TIME_SIGNAL: 0x06 } as const

/** A command and its time without `pts_adjustment`. */
interface TimedCommand {
  readonly command: SpliceCommand
  readonly ptsTicks?: number | undefined
}

/** @returns whether a splice information section is encrypted (`encrypted_packet`), so its command is unreadable */
export function isEncryptedSplice(section: Buffer): boolean {
  return ((section[4] ?? 0) & 0x80) !== 0
}

/**
 * @param section  splice information section, not encrypted, CRC_32 verified; retained
 * @returns undefined for a malformed section or an unknown protocol version
 */
export function decodeSpliceInfo(section: Buffer): SpliceInfo | undefined {
  if (section.length < MIN_BYTES) return undefined
  const protocolVersion = section[3]!
  if (protocolVersion !== 0) return undefined
  const adjustmentTicks = (section[4]! & 1) * 2 ** 32 + section.readUInt32BE(5)
  const commandLength = section.readUInt16BE(11) & 0x0fff
  const commandType = section[13]!
  const rest = section.subarray(HEADER_BYTES, section.length - CRC_BYTES)
  const isLengthKnown = commandLength !== UNKNOWN_LENGTH
  if (isLengthKnown && commandLength + 2 > rest.length) return undefined
  const reader = new BitReader(isLengthKnown ? rest.subarray(0, commandLength) : rest)
  const timed = decodeCommand(commandType, reader)
  if (reader.overrun) return undefined
  const loopAt = isLengthKnown ? commandLength : reader.position / 8
  const command = withSegmentations(timed.command, rest.subarray(loopAt))
  if (command === undefined) return undefined
  if (timed.ptsTicks === undefined) return { section, command }
  return { section, command, ptsTicks: (timed.ptsTicks + adjustmentTicks) % TIME_MODULUS }
}

function decodeCommand(commandType: number, reader: BitReader): TimedCommand {
  if (commandType === CommandType.NULL) return { command: { type: 'splice-null' } }
  if (commandType === CommandType.INSERT) return decodeInsert(reader)
  if (commandType === CommandType.TIME_SIGNAL) {
    const ptsTicks = readSpliceTime(reader)
    return { command: { type: 'time-signal', segmentations: [] }, ptsTicks }
  }
  return { command: { type: 'other', commandType } }
}

/**
 *   | event id 32 | cancel 1 | reserved 7 | out of network 1 | program 1 | has duration 1 | immediate 1 | reserved 4 |
 *   | time |                                      if of the program and not immediate
 *   | component count 8 | { tag 8 | time } … |    if of components; times if not immediate
 *   | auto return 1 | reserved 6 | duration 33 |  if has duration
 *   | unique program id 16 | avail 8 | avails expected 8 |
 */
function decodeInsert(reader: BitReader): TimedCommand {
  const type = 'splice-insert'
  const eventId = reader.readBits(32)
  const canceled = reader.readFlag()
  reader.skipBits(7)
  if (canceled) return { command: { type, eventId, canceled, outOfNetwork: false } }
  const outOfNetwork = reader.readFlag()
  const isOfProgram = reader.readFlag()
  const hasDuration = reader.readFlag()
  const isImmediate = reader.readFlag()
  reader.skipBits(4)
  const times = isOfProgram
    ? [isImmediate ? undefined : readSpliceTime(reader)]
    : readComponentTimes(reader, isImmediate)
  const autoReturn = hasDuration && reader.readFlag()
  if (hasDuration) reader.skipBits(6)
  const durationTicks = hasDuration ? readTicks(reader) : 0
  reader.skipBits(32)
  const planned = hasDuration ? { break: { durationTicks, autoReturn } } : {}
  // A segment contains all components, so it is cut once: at the first time that any component specifies.
  const ptsTicks = times.find((ticks) => ticks !== undefined)
  return { command: { type, eventId, canceled, outOfNetwork, ...planned }, ptsTicks }
}

function readComponentTimes(reader: BitReader, isImmediate: boolean): (number | undefined)[] {
  const count = reader.readBits(8)
  return Array.from({ length: count }, () => {
    reader.skipBits(8)
    return isImmediate ? undefined : readSpliceTime(reader)
  })
}

function readSpliceTime(reader: BitReader): number | undefined {
  if (reader.readFlag()) {
    reader.skipBits(6)
    return readTicks(reader)
  }
  reader.skipBits(7)
  return undefined
}

function readTicks(reader: BitReader): number {
  return reader.readBits(1) * 2 ** 32 + reader.readBits(32)
}

/** @param bytes  descriptor_loop_length and descriptor loop; stuffing may follow */
function withSegmentations(command: SpliceCommand, bytes: Buffer): SpliceCommand | undefined {
  if (command.type !== 'time-signal') return command
  if (bytes.length < 2) return undefined
  const end = 2 + bytes.readUInt16BE(0)
  const segmentations =
    end <= bytes.length ? decodeSegmentations(bytes.subarray(2, end)) : undefined
  return segmentations && { ...command, segmentations }
}
