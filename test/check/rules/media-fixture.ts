/**
 * Mutations of the media in a good session.
 *
 * @module
 */
import { isReload, type Exchange, type Reply } from '../../../src/check/exchange.ts'
import {
  parseMediaPlaylist,
  type ParsedPlaylist,
} from '../../../src/check/playlist/media-playlist.ts'
import { crc32Mpeg2 } from '../../../src/binary/crc32.ts'
import { movePcr, movePesTimes } from '../../../src/pace/packet-times.ts'
import { editPackets, placePackets, VIDEO_PID, type PlacedPacket } from '../../mpegts/edit.ts'
import { withBody } from '../session.ts'

/** PAT and PMT at the start of each segment. */
export const TABLES_BYTES = 376

/** Frames of video in each part of a recorded session. */
const FRAMES_PER_PART = 3

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

/**
 * Low latency in transport stream, as others write it: the playlist and requests of our video in CMAF, under the names
 * of our main rendition and with its media.
 *
 * @param lowLatency  session in CMAF
 * @param whole  session of the same clip in transport stream
 */
export function inTransportStream(
  lowLatency: readonly Exchange[],
  whole: readonly Exchange[],
): Exchange[] {
  const media = new Map(
    whole.flatMap(({ role, reply }) => (role === 'segment' ? [[reply!.url, reply!]] : [])),
  )
  const rename = (text: string) =>
    text.replaceAll('cmaf-video-1', 'playlist').replaceAll('-v1-', '-').replaceAll('.m4s', '.ts')
  const edit = (text: string) =>
    rename(text)
      .replaceAll(/#EXT-X-(MAP|RENDITION-REPORT).*\n/g, '')
      .replace('VERSION:6', 'VERSION:3')
  const session = lowLatency.flatMap((exchange): Exchange[] => {
    const { role, playlistUrl } = exchange
    const url = rename(exchange.url)
    const reply = { ...exchange.reply!, url }
    if (isReload(role)) {
      if (!url.includes('playlist')) return []
      const edited = withBody({ ...exchange, url, reply }, edit)
      addParts(media, parseMediaPlaylist(edited.reply!.body.toString(), url))
      return [edited]
    }
    const own = role === 'segment' || role === 'part' ? media.get(url) : undefined
    if (own === undefined) return []
    const { headers, body } = own
    const asked = { ...exchange, url, playlistUrl: rename(playlistUrl!) }
    return [{ ...asked, reply: { ...reply, headers, body } }]
  })
  return renumber(session)
}

/** Adds the parts of listed segments to media by URL. */
function addParts(media: Map<string, Reply>, { segments, url }: ParsedPlaylist): void {
  for (const { parts, sequence } of segments) {
    const segment = media.get(new URL(`e-${sequence}.ts`, url).href)
    for (const [index, { url }] of parts.entries()) {
      if (segment === undefined || media.has(url)) continue
      media.set(url, { ...segment, body: cutPart(segment.body, index) })
    }
  }
}

/** Part of a segment, with tables of its own. */
function cutPart(segment: Buffer, part: number): Buffer {
  let current = 0
  const partOf = new Map<string, number>()
  const packets = placePackets({ bytes: segment.subarray(TABLES_BYTES), sec: 0 })
  const own = packets.filter(({ pid, unit, index }) => {
    if (pid === VIDEO_PID) current = Math.floor(unit / FRAMES_PER_PART)
    const key = `${pid} ${unit}`
    if (index === 0) partOf.set(key, current)
    return partOf.get(key) === part
  })
  return Buffer.concat([segment.subarray(0, TABLES_BYTES), ...own.map(({ bytes }) => bytes)])
}
