/**
 * What happens to packets between an encoder and us, and what odd muxers make of them: a clip in, another clip out.
 *
 * @module
 */
import { TIME_MODULUS } from '../../src/binary/timestamp-33.ts'
import { movePcr, movePesTimes } from '../../src/publisher/packet-times.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { readNalUnits } from '../support/annex-b.ts'
import { readPackets, readPesPackets, type PesPacket } from '../support/ts-reader.ts'
import type { Clip } from './clip.ts'

const PACKET_BYTES = 188

/** PIDs as ffmpeg gives them out. */
export const PAT_PID = 0
export const PMT_PID = 4096
export const VIDEO_PID = 256
export const AUDIO_PID = 257

export interface PlacedPacket {
  /** The edit may change it. */
  readonly bytes: Buffer
  readonly pid: number
  /** Which PES packet (or section) of its PID it belongs to, from 0. */
  readonly unit: number
  /** Which packet of that it is, from 0. */
  readonly index: number
}

/** Every packet of the clip becomes what `edit` returns for it. */
export function editPackets(
  clip: Clip,
  edit: (packet: PlacedPacket) => readonly Uint8Array[] | Uint8Array,
): Clip {
  const pieces = placePackets(clip).flatMap((packet) => edit(packet))
  return { ...clip, bytes: Buffer.concat(pieces) }
}

/** @returns the packets with their places, each with bytes of its own */
export function placePackets({ bytes }: Clip): PlacedPacket[] {
  const last = new Map<number, { unit: number; index: number }>()
  return Array.from({ length: bytes.length / PACKET_BYTES }, (_, number) => {
    const packet = Buffer.from(bytes.subarray(number * PACKET_BYTES, (number + 1) * PACKET_BYTES))
    const pid = packet.readUInt16BE(1) & 0x1fff
    const before = last.get(pid) ?? { unit: -1, index: 0 }
    const starts = (packet[1]! & 0x40) !== 0
    const { unit, index } = starts
      ? { unit: before.unit + 1, index: 0 }
      : { unit: before.unit, index: before.index + 1 }
    last.set(pid, { unit, index })
    return { bytes: packet, pid, unit, index }
  })
}

/** Leaves out the packets that fulfil the condition. */
export function lose(clip: Clip, isLost: (packet: PlacedPacket) => boolean): Clip {
  return editPackets(clip, (packet) => (isLost(packet) ? [] : packet.bytes))
}

/** Moves all timestamps. */
export function shift(clip: Clip, sec: number): Clip {
  const ticks = (Math.round(sec * 90_000) + TIME_MODULUS) % TIME_MODULUS
  return editPackets(clip, ({ bytes }) => {
    movePcr(bytes, 0, ticks)
    movePesTimes(bytes, 0, ticks)
    return bytes
  })
}

/** One clip after the other, as one muxer sends them: their continuity counters run on. */
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

/** Puts sections of one's own in the place of those of a PID; `sectionsOf` is asked for each. */
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

/** A few bytes more than 188 for each packet: an arrival time before it (192), or parity behind it (204). */
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

/** Exchanges the packet at each of these places with the one behind it. */
export function swap(clip: Clip, isSwapped: (packet: PlacedPacket) => boolean): Clip {
  const packets = placePackets(clip)
  for (let at = 0; at + 1 < packets.length; at++) {
    if (!isSwapped(packets[at]!)) continue
    packets.splice(at, 2, packets[at + 1]!, packets[at]!)
    at++
  }
  return { ...clip, bytes: Buffer.concat(packets.map(({ bytes }) => bytes)) }
}

/** Spreads the packets of each sound's PES packet among as many of the pictures': PES packets that overlap. */
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

/** Packets of one's own before those of certain pictures. */
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

/** The clip up to a PES packet of the video, and the rest. */
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

/** Each PES packet of a PID becomes what `edit` makes of it; the PCR that it carried stays in front. */
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

/** The NAL units of every picture become what `edit` makes of them. */
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

/** The PCR of a packet, as a builder takes it. */
function readClock(bytes: Buffer) {
  const hasClock = (bytes[3]! & 0x20) !== 0 && bytes[4]! >= 7 && (bytes[5]! & 0x10) !== 0
  if (!hasClock) return {}
  return { adaptationFlags: bytes[5]! & 0x50, adaptation: bytes.subarray(6, 12) }
}
