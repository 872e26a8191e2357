/**
 * Splice information: where a program may be left for something else, as a rule an advertisement, and where it goes on
 * (ANSI/SCTE 35 9.6).
 *
 *   | table id FC 8 | 0 | 0 | SAP type 2 | section length 12 | protocol version 8 |
 *   | encrypted 1 | encryption algorithm 6 | PTS adjustment 33 | CW index 8 | tier 12 |
 *   | command length 12 | command type 8 | command … | descriptor loop length 16 | descriptors … | CRC 32 |
 *
 * A time (9.8.1) is
 *
 *   | specified 1 | reserved 6 | PTS 33 |   or   | 0 | reserved 7 |
 *
 * @module
 */
import { BitReader } from '../../binary/bit-reader.ts'
import { TIME_MODULUS } from '../../binary/timestamp-33.ts'
import { decodeSegmentations, type Segmentation } from './segmentation-descriptor.ts'

export interface SpliceInfo {
  /** The section as it was sent, checksum included. */
  readonly section: Buffer
  /**
   * When: 90 kHz, `pts_adjustment` included, of 33 bits where `decodeSpliceInfo` returns it, unwrapped like the times of
   * units where the demuxer puts it out. Undefined: at once, or the command has no time.
   */
  readonly ptsTicks?: number
  readonly command: SpliceCommand
}

/**
 * - `splice-null`: a sign of life.
 * - `time-signal`: segments begin and end; without any it stands for something that other descriptors tell.
 * - `other`: splice_schedule, bandwidth_reservation, private_command, or one that is not defined.
 */
export type SpliceCommand =
  | { readonly type: 'splice-null' }
  | SpliceInsert
  | { readonly type: 'time-signal'; readonly segmentations: readonly Segmentation[] }
  | { readonly type: 'other'; readonly commandType: number }

/** splice_insert() (9.7.3) */
export interface SpliceInsert {
  readonly type: 'splice-insert'
  /** `splice_event_id`; the same where the program is left and where it goes on. */
  readonly eventId: number
  /** What was announced under this id will not be; nothing else is told then. */
  readonly cancelled: boolean
  /** True where the program is left, false where it goes on. */
  readonly outOfNetwork: boolean
  readonly break?: {
    readonly durationTicks: number
    /** The program goes on after the duration, whether or not that is told. */
    readonly autoReturn: boolean
  }
}

export const SPLICE_INFO_TABLE_ID = 0xfc

/** Of the section, up to and including the command type. */
const HEADER_BYTES = 14
const CRC_BYTES = 4
const LEAST_BYTES = HEADER_BYTES + 2 + CRC_BYTES

/** An older sender does not tell how long its command is. */
const UNKNOWN_LENGTH = 0xfff

const CommandType = { NULL: 0x00, INSERT: 0x05, TIME_SIGNAL: 0x06 } as const

/** What a command says, and when; the time yet to be adjusted. */
interface TimedCommand {
  readonly command: SpliceCommand
  readonly ptsTicks?: number | undefined
}

/** @param section  of table FC: its command and descriptors cannot be read */
export function isEncryptedSplice(section: Buffer): boolean {
  return ((section[4] ?? 0) & 0x80) !== 0
}

/**
 * @param section  of table FC, not encrypted, its checksum right; kept
 * @returns undefined where it breaks off, or is of a protocol version that is yet to come
 */
export function decodeSpliceInfo(section: Buffer): SpliceInfo | undefined {
  if (section.length < LEAST_BYTES) return undefined
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
 *   | time |                                      of the program, unless immediate
 *   | component count 8 | { tag 8 | time } … |    of its components; times unless immediate
 *   | auto return 1 | reserved 6 | duration 33 |  where there is one
 *   | unique program id 16 | avail 8 | avails expected 8 |
 */
function decodeInsert(reader: BitReader): TimedCommand {
  const type = 'splice-insert'
  const eventId = reader.readBits(32)
  const cancelled = reader.readFlag()
  reader.skipBits(7)
  if (cancelled) return { command: { type, eventId, cancelled, outOfNetwork: false } }
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
  // Segments hold all components: they are cut once, where the first one is spliced.
  const ptsTicks = times.find((ticks) => ticks !== undefined)
  return { command: { type, eventId, cancelled, outOfNetwork, ...planned }, ptsTicks }
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

/** @param bytes  from the length of the descriptor loop on; stuffing may follow the loop */
function withSegmentations(command: SpliceCommand, bytes: Buffer): SpliceCommand | undefined {
  if (command.type !== 'time-signal') return command
  if (bytes.length < 2) return undefined
  const end = 2 + bytes.readUInt16BE(0)
  const segmentations =
    end <= bytes.length ? decodeSegmentations(bytes.subarray(2, end)) : undefined
  return segmentations && { ...command, segmentations }
}
