/**
 * Edits of clips, as networks and unusual muxers change them.
 *
 * @module
 */
import { TICKS_PER_SEC, TIME_MODULUS } from '../../src/mpegts/timestamps.ts'
import { PACKET_BYTES, PID_MASK } from '../../src/mpegts/packet.ts'
import { movePcr, movePesTimes } from '../../src/pace/packet-times.ts'
import { pesPacket, TsBuilder } from './ts-builder.ts'
import { readNalUnits } from '../support/annex-b.ts'
import { readPackets, readPesPackets, type PesPacket } from '../support/ts-reader.ts'

export interface Clip {
  readonly bytes: Buffer
  /** Time that an encoder takes to send it. */
  readonly sec: number
}

/** PIDs that ffmpeg assigns. */
export const PAT_PID = 0
export const PMT_PID = 4096
export const VIDEO_PID = 256
export const AUDIO_PID = 257

export interface PlacedPacket {
  /** The packet; an edit may change it. */
  readonly bytes: Buffer
  readonly pid: number
  /** Index of its PES packet or section on this PID, from 0. */
  readonly unit: number
  /** Index of the packet in that, from 0. */
  readonly index: number
}

/** Replaces every packet of the clip by the bytes that `edit` returns. */
export function editPackets(
  clip: Clip,
  edit: (packet: PlacedPacket) => readonly Uint8Array[] | Uint8Array,
): Clip {
  const pieces = placePackets(clip).flatMap((packet) => edit(packet))
  return { ...clip, bytes: Buffer.concat(pieces) }
}

/** @returns copies of the packets with their places */
export function placePackets({ bytes }: Clip): PlacedPacket[] {
  const last = new Map<number, { unit: number; index: number }>()
  return Array.from({ length: bytes.length / PACKET_BYTES }, (_, number) => {
    const packet = Buffer.from(bytes.subarray(number * PACKET_BYTES, (number + 1) * PACKET_BYTES))
    const pid = packet.readUInt16BE(1) & PID_MASK
    const before = last.get(pid) ?? { unit: -1, index: 0 }
    const starts = (packet[1]! & 0x40) !== 0
    const { unit, index } = starts
      ? { unit: before.unit + 1, index: 0 }
      : { unit: before.unit, index: before.index + 1 }
    last.set(pid, { unit, index })
    return { bytes: packet, pid, unit, index }
  })
}

/** Drops the packets that fulfill the condition. */
export function lose(clip: Clip, isLost: (packet: PlacedPacket) => boolean): Clip {
  return editPackets(clip, (packet) => (isLost(packet) ? [] : packet.bytes))
}

/** Moves all timestamps. */
export function shift(clip: Clip, sec: number): Clip {
  const ticks = (Math.round(sec * TICKS_PER_SEC) + TIME_MODULUS) % TIME_MODULUS
  return editPackets(clip, ({ bytes }) => {
    movePcr(bytes, 0, ticks)
    movePesTimes(bytes, 0, ticks)
    return bytes
  })
}

/** Renumbers the continuity counters of clips as if one muxer sent them in sequence. */
export function continued(...clips: readonly Clip[]): Clip[] {
  const counters = new Map<number, number>()
  return clips.map((clip) =>
    editPackets(clip, ({ bytes, pid }) => {
      const hasPayload = (bytes[3]! & 0x10) !== 0
      const counter = ((counters.get(pid) ?? 15) + (hasPayload ? 1 : 0)) & 15
      counters.set(pid, counter)
      bytes[3] = (bytes[3]! & 0xf0) | counter
      return bytes
    }),
  )
}

export function join(...clips: readonly Clip[]): Clip {
  return {
    bytes: Buffer.concat(continued(...clips).map(({ bytes }) => bytes)),
    sec: clips.reduce((sum, { sec }) => sum + sec, 0),
  }
}

/** Replaces every section of a PID by those that `sectionsOf` returns. */
export function replaceSections(
  clip: Clip,
  pid: number,
  sectionsOf: (unit: number) => readonly Uint8Array[],
): Clip {
  const builder = new TsBuilder()
  return editPackets(clip, (packet) => {
    if (packet.pid !== pid) return packet.bytes
    if (packet.index > 0) return []
    const from = builder.packets.length
    const sections = sectionsOf(packet.unit)
    if (sections.length > 0) builder.sections(pid, ...sections)
    return builder.packets.slice(from)
  })
}

/** Adds bytes to each packet: an arrival timestamp before it (192), or a Reed-Solomon code after it (204). */
export function restride(clip: Clip, { before = 0, after = 0 }): Clip {
  return editPackets(clip, ({ bytes }) => [
    Buffer.alloc(before, 0x11),
    bytes,
    Buffer.alloc(after, 0x22),
  ])
}

/** The reverse of `restride`. */
export function unstride(clip: Clip, { before = 0, after = 0 }): Clip {
  const stride = before + PACKET_BYTES + after
  const packets = Array.from({ length: clip.bytes.length / stride }, (_, number) => {
    const start = number * stride + before
    return clip.bytes.subarray(start, start + PACKET_BYTES)
  })
  return { ...clip, bytes: Buffer.concat(packets) }
}

/** Swaps each of these packets with the next. */
export function swap(clip: Clip, isSwapped: (packet: PlacedPacket) => boolean): Clip {
  const packets = placePackets(clip)
  for (let at = 0; at + 1 < packets.length; at++) {
    if (!isSwapped(packets[at]!)) continue
    packets.splice(at, 2, packets[at + 1]!, packets[at]!)
    at++
  }
  return { ...clip, bytes: Buffer.concat(packets.map(({ bytes }) => bytes)) }
}

/** Spreads the packets of each audio PES packet among video packets, so that PES packets overlap. */
export function interleave(clip: Clip, stride: number): Clip {
  const waiting: Buffer[] = []
  let turn = 0
  const spread = editPackets(clip, ({ pid, bytes }) => {
    if (pid === AUDIO_PID) {
      waiting.push(bytes)
      return []
    }
    if (pid !== VIDEO_PID || waiting.length === 0) return bytes
    turn = (turn + 1) % stride
    return turn === 0 ? [bytes, waiting.shift()!] : bytes
  })
  return { ...spread, bytes: Buffer.concat([spread.bytes, ...waiting]) }
}

/** Inserts packets before video PES packets. */
export function insertBefore(
  clip: Clip,
  packetsOf: (unit: number, builder: TsBuilder) => void,
): Clip {
  const builder = new TsBuilder()
  return editPackets(clip, ({ bytes, pid, unit, index }) => {
    if (pid !== VIDEO_PID || index > 0) return bytes
    const from = builder.packets.length
    packetsOf(unit, builder)
    return [...builder.packets.slice(from), bytes]
  })
}

/** Splits the clip before a video PES packet. */
export function split(clip: Clip, unit: number): [Clip, Clip] {
  const packets = placePackets(clip)
  const at = packets.findIndex((packet) => packet.pid === VIDEO_PID && packet.unit === unit)
  const bytes = at * PACKET_BYTES
  const sec = clip.sec * (bytes / clip.bytes.length)
  return [
    { bytes: clip.bytes.subarray(0, bytes), sec },
    { bytes: clip.bytes.subarray(bytes), sec: clip.sec - sec },
  ]
}

/** Replaces every PES packet of a PID by those that `edit` returns; its PCR stays in the first packet. */
export function editPes(
  clip: Clip,
  pid: number,
  edit: (pes: PesPacket, unit: number) => readonly Uint8Array[] | Uint8Array,
): Clip {
  const all = readPesPackets(readPackets(clip.bytes), pid)
  const builder = new TsBuilder()
  return editPackets(clip, (packet) => {
    if (packet.pid !== pid) return packet.bytes
    if (packet.index > 0) return []
    const from = builder.packets.length
    const edited = edit(all[packet.unit]!, packet.unit)
    const [first, ...others] = edited instanceof Uint8Array ? [edited] : edited
    if (first !== undefined) builder.unit(pid, first, readClock(packet.bytes))
    for (const pes of others) builder.unit(pid, pes)
    return builder.packets.slice(from)
  })
}

/** Replaces the NAL units of every video PES packet by those that `edit` returns. */
export function editNalUnits(
  clip: Clip,
  edit: (nalUnits: readonly Buffer[], unit: number) => readonly Buffer[],
): Clip {
  return editPes(clip, VIDEO_PID, ({ payload, ...header }, unit) => {
    const nalUnits = edit(readNalUnits(payload), unit)
    const bytes = Buffer.concat(nalUnits.flatMap((nal) => [START_CODE, nal]))
    return pesPacket(bytes, { ...header, length: 'none' })
  })
}

const START_CODE = Buffer.from([0, 0, 0, 1])

/** @returns the PCR of a packet, in the form that `TsBuilder` takes */
function readClock(bytes: Buffer) {
  const hasClock = (bytes[3]! & 0x20) !== 0 && bytes[4]! >= 7 && (bytes[5]! & 0x10) !== 0
  if (!hasClock) return {}
  return { adaptationFlags: bytes[5]! & 0x50, adaptation: bytes.subarray(6, 12) }
}
