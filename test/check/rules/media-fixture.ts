/**
 * Mutations of the media in a good session.
 *
 * @module
 */
import type { Exchange } from '../../../src/check/exchange.ts'
import { crc32Mpeg2 } from '../../../src/binary/crc32.ts'
import { editPackets, type PlacedPacket } from '../../mpegts/edit.ts'
import { movePcr, movePesTimes } from '../../../src/publisher/packet-times.ts'

export interface PlacedMedia {
  readonly exchange: Exchange
  readonly bytes: Buffer
  /** Name of the playlist, for example `playlist` or `audio-2`. */
  readonly playlist: string
  /** Index among the segments, or among the parts, of that playlist. */
  readonly index: number
}

/** Replaces the bodies of segments, parts and init segments by what `edit` returns. */
export function editMediaBytes(
  exchanges: readonly Exchange[],
  edit: (media: PlacedMedia) => Buffer,
): Exchange[] {
  const counts = new Map<string, number>()
  return exchanges.map((exchange) => {
    const { role, playlistUrl = '', reply } = exchange
    if (reply === undefined || (role !== 'segment' && role !== 'part')) return exchange
    const key = `${role} ${playlistUrl}`
    const index = counts.get(key) ?? 0
    counts.set(key, index + 1)
    const playlist = /([^/]+)\.m3u8$/.exec(playlistUrl)?.[1] ?? ''
    const body = edit({ exchange, bytes: Buffer.from(reply.body), playlist, index })
    return { ...exchange, reply: { ...reply, body } }
  })
}

/** Edits the main playlist's segment, or part, of this index. */
export function editOne(
  exchanges: readonly Exchange[],
  index: number,
  edit: (bytes: Buffer) => Buffer,
): Exchange[] {
  return editMediaBytes(exchanges, (media) =>
    media.playlist === 'playlist' && media.index === index ? edit(media.bytes) : media.bytes,
  )
}

/** Replaces every packet by those that `edit` returns. */
export function mapPackets(
  bytes: Buffer,
  edit: (packet: PlacedPacket) => readonly Uint8Array[] | Uint8Array,
): Buffer {
  return editPackets({ bytes, sec: 0 }, edit).bytes
}

/** @param pid  of the packets to move; all if undefined */
export function shiftTimes(bytes: Buffer, sec: number, pid?: number): Buffer {
  return mapPackets(bytes, (packet) => {
    if (pid !== undefined && packet.pid !== pid) return packet.bytes
    movePcr(packet.bytes, 0, sec * 90_000)
    movePesTimes(packet.bytes, 0, sec * 90_000)
    return packet.bytes
  })
}

/** Renumbers the continuity counters over all media of each playlist, apart for segments and parts. */
export function renumber(exchanges: readonly Exchange[]): Exchange[] {
  const counters = new Map<string, number>()
  return editMediaBytes(exchanges, ({ exchange, bytes, playlist }) =>
    mapPackets(bytes, (packet) => {
      const key = `${exchange.role} ${playlist} ${packet.pid}`
      const hasPayload = (packet.bytes[3]! & 0x10) !== 0
      const counter = ((counters.get(key) ?? 15) + (hasPayload ? 1 : 0)) & 15
      counters.set(key, counter)
      packet.bytes[3] = (packet.bytes[3]! & 0xf0) | counter
      return packet.bytes
    }),
  )
}

/** Replaces each occurrence of some bytes, in place. */
export function replaceBytes(bytes: Buffer, from: string, to: string): Buffer {
  const [old, next] = [Buffer.from(from, 'hex'), Buffer.from(to, 'hex')]
  for (let at = bytes.indexOf(old); at >= 0; at = bytes.indexOf(old, at + 1)) next.copy(bytes, at)
  return bytes
}

/** Replaces bytes in a section that fits a packet, and its CRC_32. */
export function editSection(packet: Buffer, from: string, to: string): Buffer {
  const edited = replaceBytes(Buffer.from(packet), from, to)
  const start = sectionStart(edited)
  const end = start + 3 + (edited.readUInt16BE(start + 1) & 0x0fff)
  edited.writeUInt32BE(crc32Mpeg2(edited.subarray(start, end - 4)), end - 4)
  return edited
}

function sectionStart(packet: Buffer): number {
  const payloadAt = (packet[3]! & 0x20) === 0 ? 4 : 5 + packet[4]!
  return payloadAt + 1 + packet[payloadAt]!
}
