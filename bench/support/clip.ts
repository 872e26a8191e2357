/**
 * The demo clip at any higher bit rate: a filler data NAL unit (ITU-T H.264 7.3.2.7) enlarges every frame. Decoders skip
 * it, while transport costs as much as real video of that rate.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { Demuxer, type PesUnit } from '../../src/mpegts/index.ts'
import { PACKET_BYTES, PAT_PID, readPid, SYNC_BYTE } from '../../src/mpegts/packet.ts'
import { pesBytes } from '../../src/mpegts/pes.ts'
import { readPcr } from '../../src/pace/packet-times.ts'

/** Path relative to the working directory of `npm run`. */
const DEMO_FILE = 'fixtures/demo.mpegts'
const DEMO_SEC = 8
const DEMO_FRAMES = 240
const DEMO_PMT_PID = 0x1000

const PAYLOAD_BYTES = PACKET_BYTES - 4
/** Size of length, flags and PCR of an adaptation field (ISO/IEC 13818-1 2.4.3.4). */
const PCR_FIELD_BYTES = 8

const FILLER_START = [0, 0, 0, 1, 0x0c]
const TRAILING_BITS = 0x80

/** @returns 8 s of transport stream for gapless repetition, at the given bit rate or the clip's own if that is higher */
export function clipOf(bitsPerSecond: number): Buffer {
  const demo = readFileSync(DEMO_FILE)
  const demuxer = new Demuxer()
  const units = [...demuxer.push(demo), ...demuxer.end()].flatMap((output) =>
    output.type === 'unit' ? [output.unit] : [],
  )
  const audio = units.filter(({ track }) => track.kind === 'audio')
  const audioBytes = audio.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const frameBytes = ((bitsPerSecond / 8) * DEMO_SEC - audioBytes) / DEMO_FRAMES
  const tables = [PAT_PID, DEMO_PMT_PID].map((pid) =>
    packetsOf(demo).find((packet) => readPid(packet, 0) === pid)!,
  )
  const packets = units.flatMap((unit) => {
    if (unit.track.kind === 'audio') return packetsOf(Buffer.concat(unit.chunks))
    const frame = stuffed(unit, frameBytes)
    return unit.randomAccess ? packetsOf(Buffer.concat(tables)).concat(frame) : frame
  })
  numberPackets(packets)
  return Buffer.concat(packets)
}

/** @returns transport packets of a video frame, `targetBytes` in total */
function stuffed({ chunks, track: { pid } }: PesUnit, targetBytes: number): Buffer[] {
  const pes = pesBytes(chunks)
  const payloadBytes = Math.round((targetBytes * PAYLOAD_BYTES) / PACKET_BYTES)
  const filler = Buffer.alloc(Math.max(payloadBytes - pes.length, FILLER_START.length + 1), 0xff)
  filler.set(FILLER_START)
  filler[filler.length - 1] = TRAILING_BITS
  // The PES packet stays unbounded, as in the demo clip.
  return packetize(pid, pcrField(chunks[0]!), Buffer.concat([pes, filler]))
}

function pcrField(packet: Buffer): Buffer {
  if (readPcr(packet, 0) === undefined) return Buffer.alloc(0)
  const field = Buffer.from(packet.subarray(4, 4 + PCR_FIELD_BYTES))
  field[0] = PCR_FIELD_BYTES - 1
  return field
}

function packetize(pid: number, firstField: Buffer, pes: Buffer): Buffer[] {
  const packets: Buffer[] = []
  for (let at = 0; at < pes.length;) {
    const field = at === 0 ? firstField : stuffingField(PAYLOAD_BYTES - (pes.length - at))
    const payload = pes.subarray(at, at + PAYLOAD_BYTES - field.length)
    const header = [
      SYNC_BYTE,
      (at === 0 ? 0x40 : 0) | (pid >> 8),
      pid & 0xff,
      field.length > 0 ? 0x30 : 0x10,
    ]
    packets.push(Buffer.concat([Buffer.from(header), field, payload]))
    at += payload.length
  }
  return packets
}

/** @returns an empty adaptation field of the given size */
function stuffingField(sizeBytes: number): Buffer {
  if (sizeBytes <= 0) return Buffer.alloc(0)
  const field = Buffer.alloc(sizeBytes, 0xff)
  field[0] = sizeBytes - 1
  if (sizeBytes > 1) field[1] = 0
  return field
}

/** Renumbers the continuity counters of each PID from 0. */
function numberPackets(packets: readonly Buffer[]): void {
  const counters = new Map<number, number>()
  for (const packet of packets) {
    const pid = readPid(packet, 0)
    const counter = ((counters.get(pid) ?? -1) + 1) & 0x0f
    packet[3] = (packet[3]! & 0xf0) | counter
    counters.set(pid, counter)
  }
}

function packetsOf(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / PACKET_BYTES }, (_, index) =>
    bytes.subarray(index * PACKET_BYTES, (index + 1) * PACKET_BYTES),
  )
}
