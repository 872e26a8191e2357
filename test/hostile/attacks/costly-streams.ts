/**
 * Transport streams that make a receiver work as hard as their bytes can: each packet changes a table, begins a unit,
 * jumps in time or breaks a rule. Endless, and the same on every run.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { movePesTimes } from '../../../src/pace/packet-times.ts'
import { loas, STEREO } from '../../codec/latm-builder.ts'
import { segmentationDescriptor, spliceInsert, timeSignal } from '../../mpegts/splice-builder.ts'
import {
  patSection,
  pesPacket,
  pmtSection,
  TsBuilder,
  type PmtStream,
} from '../../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../../support/access-units.ts'
import { COSTLY_MEDIA } from './costly-media.ts'

const PACKET_BYTES = 188
const PACKETS_PER_PAYLOAD = 7
const PAYLOAD_BYTES = PACKETS_PER_PAYLOAD * PACKET_BYTES

const MAP_PID = 0x1000
const VIDEO: PmtStream = { pid: 0x100, streamType: 0x1b }
const AUDIO: PmtStream = { pid: 0x101, streamType: 0x0f }
const SPLICES: PmtStream = { pid: 0x102, streamType: 0x86 }
const METADATA: PmtStream = {
  pid: 0x103,
  streamType: 0x15,
  descriptors: Buffer.from('260dffff49443320ff4944332000 0f'.replace(' ', ''), 'hex'),
}

/** 33 ms of 90 kHz. */
const FRAME_TICKS = 3000

/** About as many as a second of 10 Mbit/s holds. */
const OPENING_EACH_PACKETS = 7000

export interface CostlyStream {
  /** Packets sent first and repeated at intervals, since some may be dropped. */
  readonly opening: TsBuilder
  /** Packets sent repeatedly. */
  readonly round: TsBuilder
  /** Advance of the timestamps from round to round. */
  readonly roundTicks?: number
  /** Program to publish. */
  readonly program?: 'all'
  /** Whether the packets have their own continuity counters. */
  readonly keepsCounters?: boolean
}

/** An IDR picture without parameter sets in one packet. */
const BARE_KEY = nals('0000000165888040')
const KEY = h264AccessUnit({ key: true, sizeBytes: 100 })
const DELTA = h264AccessUnit({ key: false, sizeBytes: 60 })
/** Tag of 10 bytes without frames. */
const ID3_TAG = Buffer.from('ID3\x04\0\0\0\0\0\x0a0123456789', 'latin1')

/** Streams by name. */
export const COSTLY_STREAMS: Readonly<Record<string, () => CostlyStream>> = {
  'PAT of 8 x 253 programs, one section changes': () => {
    const sections = Array.from({ length: 8 }, (_, index) =>
      patOf(index * 253 + 1, index === 0 ? 1 : 253, index),
    )
    const opening = new TsBuilder()
    for (const section of sections) opening.sections(0, section)
    const round = new TsBuilder()
    for (let mapPid = 0x20; mapPid < 0x60; mapPid++) {
      round.sections(0, patSection([[1, mapPid]], { sectionNumber: 0, lastSectionNumber: 7 }))
    }
    return { opening, round }
  },
  'PAT of one program, its PID changes': () => {
    const round = new TsBuilder()
    for (let mapPid = 0x20; mapPid < 0x60; mapPid++) round.sections(0, patSection([[1, mapPid]]))
    return { opening: media(VIDEO, AUDIO), round }
  },
  'PAT version changes': () => {
    const round = new TsBuilder()
    for (let version = 0; version < 32; version++) {
      round.sections(0, patSection([[1, MAP_PID + (version & 1)]], { version }))
    }
    return { opening: media(VIDEO, AUDIO), round }
  },
  'PMT of 30 streams, each with another set': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 64; turn++)
      round.sections(MAP_PID, pmtSection(1, 0x100, many(30, 0x100 + turn)))
    return { opening: media(VIDEO, AUDIO), round }
  },
  'PMT of 200 streams, each with another type': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 16; turn++) {
      const streams = many(200, 0x100).map((it, i) =>
        i === turn ? { ...it, streamType: 0x0f } : it,
      )
      round.sections(MAP_PID, pmtSection(1, 0x100, streams))
    }
    return { opening: media(VIDEO, AUDIO), round }
  },
  'PMT of one of 8 programs of 30 streams, all carried': () => {
    const opening = new TsBuilder()
    const numbers = Array.from({ length: 8 }, (_, index) => index + 1)
    opening.sections(0, patSection(numbers.map((number) => [number, MAP_PID + number])))
    for (const number of numbers) {
      opening.sections(MAP_PID + number, pmtSection(number, 0x100, many(30, 0x100 + number * 32)))
    }
    const round = new TsBuilder()
    for (let turn = 0; turn < 64; turn++) {
      const number = 1 + (turn & 7)
      round.sections(
        MAP_PID + number,
        pmtSection(number, 0x100, many(30 - ((turn >> 3) & 1), 0x100 + number * 32)),
      )
    }
    return { opening, round, program: 'all' }
  },
  'PMT of one of 1000 programs, all carried': () => {
    const opening = new TsBuilder()
    for (let index = 0; index < 4; index++)
      opening.sections(0, patOf(index * 250 + 1, 250, index, 3))
    for (let number = 1; number <= 1000; number++) {
      opening.sections(
        0x20 + number,
        pmtSection(number, 0x100, [{ pid: 0x1000 + number, streamType: 0x1b }]),
      )
    }
    const round = new TsBuilder()
    for (let turn = 0; turn < 64; turn++) {
      round.sections(0x21, pmtSection(1, 0x100, [{ pid: 0x100 + turn, streamType: 0x1b }]))
    }
    return { opening, round, program: 'all' }
  },
  'PMT sections that only differ in version': () => {
    const round = new TsBuilder()
    for (let version = 0; version < 32; version++) {
      round.sections(MAP_PID, pmtSection(1, 0x100, [VIDEO, AUDIO], { version }))
    }
    return { opening: media(VIDEO, AUDIO), round }
  },
  'sections with a wrong checksum': () => {
    const round = new TsBuilder()
    const section = pmtSection(1, 0x100, many(30, 0x100))
    section[20]! ^= 1
    for (let turn = 0; turn < 64; turn++) round.sections(MAP_PID, section)
    return { opening: media(VIDEO, AUDIO), round }
  },
  '14 sections a packet': () => {
    const round = new TsBuilder()
    const sections = Array.from({ length: 10 }, (_, version) =>
      pmtSection(9, 0x100, [], { version }),
    )
    for (let turn = 0; turn < 64; turn++) round.sections(MAP_PID, ...sections)
    return { opening: media(VIDEO, AUDIO), round }
  },
  'a unit a packet, 150 data streams': () => unitsOf(many(150, 0x200, 0x06), Buffer.from([0])),
  'a unit a packet, 8 video and 16 audio tracks': () =>
    unitsOf([...many(8, 0x200, 0x1b), ...many(16, 0x300, 0x0f)], Buffer.concat([KEY])),
  'a unit a packet, AAC': () => unitsOf([AUDIO], adtsFrames(1)),
  'a unit a packet, AAC, no header is one': () =>
    unitsOf([AUDIO], Buffer.alloc(160, Buffer.from([0xff, 0xf1, 0x4c, 0x80, 0x01, 0x20]))),
  'a unit a packet, AC-3 without a sync word that holds': () =>
    unitsOf(
      [{ pid: 0x101, streamType: 0x81 }],
      Buffer.alloc(160, Buffer.from([0x0b, 0x77, 0, 0, 0x10, 0x40])),
    ),
  'a unit a packet, key frames': () => unitsOf([VIDEO], KEY),
  'a unit a packet, H.264 without sets, 4 KiB inserted': () => {
    const round = unitsOf([VIDEO], BARE_KEY)
    const sets = Array.from({ length: 28 }, (_, id) => parameterSet(id))
    const first = Buffer.concat([nals('00000001' + SPS_HEX), ...sets, BARE_KEY])
    round.opening.unit(VIDEO.pid, pesPacket(first, { ptsTicks: 0, length: 'none' }))
    return round
  },
  'a unit a packet, H.264 without a delimiter': () =>
    unitsOf([VIDEO], nals(`00000001${SPS_HEX}0000000168ce0fc80000000165888040`)),
  'a unit a packet, sequence parameter sets in turn': () => {
    const [a, b] = [SPS_HEX, SPS_320_HEX].map((sps) =>
      nals(`0000000109f000000001${sps}0000000168ce0fc80000000165888040`),
    )
    return unitsOf([VIDEO], a!, b!)
  },
  'a unit a packet, sample rates in turn': () => {
    const [a, b] = [adtsFrames(1), adtsFrames(1)]
    b[2] = 0x50
    return unitsOf([AUDIO], a, b)
  },
  'a unit a packet, sample rates in turn, 200 streams': () => {
    const [a, b] = [adtsFrames(1), adtsFrames(1)]
    b[2] = 0x50
    return unitsOf([AUDIO, ...many(150, 0x200, 0x06)], a, b)
  },
  'NAL units of 3 bytes': () => unitsOf([VIDEO], Buffer.alloc(165, nals('00000167'))),
  'NAL units of 1 byte, none of interest': () =>
    unitsOf([VIDEO], Buffer.alloc(165, nals('0000010c'))),
  'SEI messages of 2 bytes': () => {
    const sei = Buffer.alloc(160, Buffer.from([0x05, 0x00]))
    return unitsOf([VIDEO], Buffer.concat([nals('0000000106'), sei]))
  },
  'SEI in 4 KiB': () => {
    const round = new TsBuilder()
    const sei = Buffer.concat([
      nals('0000000106'),
      Buffer.alloc(4000, Buffer.from([0x06, 0x00])),
      BARE_KEY,
    ])
    for (let turn = 0; turn < 16; turn++)
      round.unit(VIDEO.pid, pesPacket(sei, { ptsTicks: turn * FRAME_TICKS, length: 'none' }))
    return { opening: media(VIDEO, AUDIO), round, roundTicks: 16 * FRAME_TICKS }
  },
  'PES header spread over packets of 1 byte': () => {
    const round = new TsBuilder()
    const pes = pesPacket(KEY, { ptsTicks: 0, length: 'none' })
    for (let at = 0; at < 100; at++)
      round.packet({ pid: VIDEO.pid, payload: pes.subarray(at, at + 1), unitStart: at === 0 })
    return { opening: media(VIDEO, AUDIO), round, roundTicks: FRAME_TICKS }
  },
  'PES header of 264 bytes, never whole, in packets of 1 byte': () => {
    const round = new TsBuilder()
    const pes = Buffer.alloc(250, 0xff)
    Buffer.from([0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 255]).copy(pes)
    for (let at = 0; at < 250; at++)
      round.packet({ pid: VIDEO.pid, payload: pes.subarray(at, at + 1), unitStart: at === 0 })
    return { opening: media(VIDEO, AUDIO), round }
  },
  'timestamps jump at each key frame': () =>
    unitsAt([VIDEO], KEY, (turn) => (turn & 1) * 9_000_000 + turn * FRAME_TICKS),
  'timestamps jump at each key frame, 24 renditions': () => {
    const streams = [...many(8, 0x200, 0x1b), ...many(16, 0x300, 0x0f)]
    return {
      opening: media(...streams),
      round: unitsAt([streams[0]!], KEY, (turn) => (turn & 1) * 9_000_000 + turn * FRAME_TICKS)
        .round,
      roundTicks: 64 * FRAME_TICKS,
    }
  },
  'key frames 2 s apart': () => unitsAt([VIDEO], KEY, (turn) => turn * 180_000, 180_000),
  'key frames 2 s apart, 24 renditions': () => {
    const streams = [...many(8, 0x200, 0x1b), ...many(16, 0x300, 0x0f)]
    const round = new TsBuilder()
    for (let turn = 0; turn < 32; turn++) {
      for (const { pid, streamType } of streams) {
        const payload = streamType === 0x1b ? KEY : adtsFrames(1)
        round.unit(pid, pesPacket(payload, { ptsTicks: turn * 180_000 }))
      }
    }
    return { opening: media(...streams), round, roundTicks: 32 * 180_000 }
  },
  'frames 2 s apart, none a key frame': () => ({
    ...unitsAt([VIDEO], DELTA, (turn) => turn * 180_000, 180_000),
    opening: media(VIDEO, AUDIO).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
  }),
  'frames 1 s apart beside silence': () => {
    const opening = media(VIDEO, AUDIO)
    for (let turn = 0; turn < 8; turn++) {
      opening.unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: turn * 90_000 }))
      opening.unit(AUDIO.pid, pesPacket(adtsFrames(1), { ptsTicks: turn * 90_000 }))
    }
    opening.sections(MAP_PID, pmtSection(1, 0x100, [VIDEO]))
    return { ...unitsAt([VIDEO], KEY, (turn) => 720_000 + turn * 89_000, 89_000), opening }
  },
  'a follower waits for a leader that stands still': () => waiting(1, 90_000),
  'all followers wait for a leader that stands still': () => waiting(23, 4 * 90_000),
  'splices, each another': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 128; turn++) {
      round.sections(SPLICES.pid, spliceInsert({ eventId: turn, ptsTicks: undefined }))
    }
    return {
      opening: media(VIDEO, SPLICES).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
      round,
    }
  },
  'splices, each another, and a key frame behind': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 128; turn++) {
      round.sections(SPLICES.pid, spliceInsert({ eventId: turn, ptsTicks: undefined }))
      round.unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: turn * FRAME_TICKS }))
    }
    return { opening: media(VIDEO, SPLICES), round, roundTicks: 128 * FRAME_TICKS }
  },
  'future splices, and video': () => {
    const opening = media(VIDEO, SPLICES)
    const round = new TsBuilder()
    for (let turn = 0; turn < 128; turn++) {
      if (turn % 2 === 0)
        round.sections(SPLICES.pid, spliceInsert({ eventId: turn, ptsTicks: 4_000_000 + turn }))
      round.unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: turn * 10 }))
    }
    return { opening, round }
  },
  'splices of 9 descriptors': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 64; turn++) {
      const descriptors = Array.from({ length: 6 }, (_, index) => ({
        eventId: turn * 8 + index,
        typeId: 0x30,
      }))
      round.sections(SPLICES.pid, timeSignal(undefined, descriptors))
    }
    return {
      opening: media(VIDEO, SPLICES).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
      round,
    }
  },
  'splices of 4 KiB, 16 renditions': () => spliced('out, in'),
  'splices of 4 KiB that never end, 16 renditions': () => spliced('out'),
  'splices of 4 KiB with a time each, 16 renditions': () => spliced('command'),
  'splices of 40 bytes, 16 renditions': () => spliced('small'),
  'no splices, 16 renditions': () => spliced('none'),
  'a unit a packet, ID3': () => ({
    ...unitsAt([METADATA], ID3_TAG, (turn) => turn * 10, 10),
    opening: media(VIDEO, METADATA).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
  }),
  'metadata ahead of its time': () => ({
    ...unitsAt([METADATA], Buffer.alloc(10), (turn) => 500_000 + turn),
    opening: media(VIDEO, METADATA).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
  }),
  'audio ahead of its time': () => ({
    ...unitsAt([AUDIO], adtsFrames(1), (turn) => 500_000 + turn),
    opening: media(VIDEO, AUDIO).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
  }),
  'audio far from video': () => ({
    ...unitsAt([AUDIO], adtsFrames(1), (turn) => 50_000_000 + turn),
    opening: media(VIDEO, AUDIO).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
  }),
  'LATM, its configuration in turn': () =>
    unitsOf(
      [{ pid: 0x101, streamType: 0x11 }],
      loas({}, Buffer.alloc(20)),
      loas({ audio: STEREO.replace('0001', '0010').slice(0, 16) }, Buffer.alloc(20)),
    ),
  'adaptation fields alone': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 70; turn++)
      round.packet({ pid: VIDEO.pid, adaptationFlags: 0x10, adaptation: Buffer.alloc(6, turn) })
    return { opening: media(VIDEO).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })), round }
  },
  'counters that jump': () => {
    const round = new TsBuilder()
    for (let turn = 0; turn < 70; turn++)
      round.packet({ pid: VIDEO.pid, payload: Buffer.alloc(184), counter: (turn * 5) & 15 })
    return {
      opening: media(VIDEO).unit(VIDEO.pid, pesPacket(KEY, { ptsTicks: 0 })),
      round,
      keepsCounters: true,
    }
  },
  'sync bytes alone': () => raw(Buffer.alloc(PACKET_BYTES, 0x47)),
  'sync bytes, but for the fifth': () => {
    const bytes = Buffer.alloc(PACKET_BYTES * 64, 0x47)
    for (let at = 4 * PACKET_BYTES; at < bytes.length; at += 5 * PACKET_BYTES)
      bytes.fill(0, at, at + 60)
    return raw(bytes)
  },
  'sync lost behind every fifth packet': () => {
    const five = Buffer.concat(Array.from({ length: 5 }, () => nullPacket()))
    return raw(Buffer.concat([five, Buffer.alloc(PACKET_BYTES * 2, 1)]))
  },
  ...COSTLY_MEDIA,
}

const SPS_HEX = '6742c00dda05067e7c0440000003004000000f03c50aa8'
const SPS_320_HEX = '6742c00dda0507e7c0440000030040000000f03c50aa80'

function nals(hex: string): Buffer {
  return Buffer.from(hex, 'hex')
}

/** A picture parameter set of that id, about 144 bytes. */
function parameterSet(id: number): Buffer {
  const bits = '0'.repeat(Math.floor(Math.log2(id + 1))) + (id + 1).toString(2)
  const head = Number.parseInt(bits.padEnd(16, '1').slice(0, 16), 2)
  return Buffer.concat([
    nals('0000000168'),
    Buffer.from([head >> 8, head & 255]),
    Buffer.alloc(138, 0xaa),
  ])
}

/** A unit a packet of up to 23 tracks that are ahead of a video that stands still. */
function waiting(followers: number, aheadTicks: number): CostlyStream {
  const [leader, ...others] = [...many(8, 0x200, 0x1b), ...many(16, 0x300, 0x0f)]
  const opening = media(leader!, ...others).unit(leader!.pid, pesPacket(KEY, { ptsTicks: 0 }))
  const round = new TsBuilder()
  for (let turn = 0; turn < 70; turn++) {
    for (const { pid, streamType } of others.slice(0, followers)) {
      const payload = streamType === 0x1b ? DELTA : adtsFrames(1)
      round.unit(pid, pesPacket(payload, { ptsTicks: aheadTicks + turn }))
    }
  }
  return { opening, round }
}

function nullPacket(): Buffer {
  const packet = Buffer.alloc(PACKET_BYTES, 0xff)
  return packet.fill(Buffer.from([0x47, 0x1f, 0xff, 0x10]), 0, 4)
}

function raw(bytes: Buffer): CostlyStream {
  const round = new TsBuilder()
  for (let at = 0; at < bytes.length; at += PACKET_BYTES)
    round.packets.push(bytes.subarray(at, at + PACKET_BYTES))
  return { opening: new TsBuilder(), round }
}

/** Bytes of a descriptor that makes a splice information section one of 4 KiB. */
const FILLED = Buffer.concat(
  Array.from({ length: 15 }, (_, index) => {
    const noise = Array.from({ length: 32 }, (_, at) => sha256(`${index} ${at}`).subarray(0, 8))
    return Buffer.concat([Buffer.from([0xf0, 254]), Buffer.concat(noise).subarray(0, 254)])
  }),
)

/** One video track of 1 frame in 33 ms, 16 audio tracks, and splices or video; 8 s of 1.2 Mbit/s. */
function spliced(kind: SpliceKind): CostlyStream {
  const audios = many(16, 0x300, 0x0f)
  const round = new TsBuilder().program([VIDEO, ...audios, SPLICES])
  // Sections that repeat are ignored: all of the round are different.
  const frames = 240
  for (let frame = 0; frame < frames; frame++) {
    const ptsTicks = frame * FRAME_TICKS
    const unit = h264AccessUnit({ key: frame % 30 === 0, sizeBytes: kind === 'none' ? 2900 : 100 })
    round.unit(VIDEO.pid, pesPacket(unit, { ptsTicks, length: 'none' }))
    if (frame % 4 === 0) {
      const payload = adtsFrames(6)
      for (const { pid } of audios)
        round.unit(pid, pesPacket(payload, { ptsTicks, streamId: 0xc0 }))
    }
    if (frame % 3 !== 2) round.packets.push(...splicesOf(kind, frame).packets)
  }
  return { opening: new TsBuilder(), round, roundTicks: frames * FRAME_TICKS }
}

type SpliceKind = 'out, in' | 'out' | 'command' | 'small' | 'none'

function splicesOf(kind: SpliceKind, eventId: number): TsBuilder {
  const ts = new TsBuilder()
  if (kind === 'out, in' || kind === 'out') {
    const out = kind === 'out' || eventId % 3 === 0
    const id = kind === 'out' ? eventId : Math.floor(eventId / 3)
    const fields = { eventId: id, out, ptsTicks: undefined }
    return ts.sections(SPLICES.pid, spliceInsert(fields, { descriptors: FILLED }))
  }
  if (kind === 'command') {
    const descriptors = Buffer.concat([segmentationDescriptor({ eventId, typeId: 0x10 }), FILLED])
    return ts.sections(SPLICES.pid, timeSignal(undefined, [], { descriptors }))
  }
  const count = kind === 'small' ? 20 : 0
  for (let index = 0; index < count; index++) {
    const event = { eventId: eventId * 20 + index, typeId: 0x10 }
    ts.sections(SPLICES.pid, timeSignal(undefined, [event]))
  }
  return ts
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** PAT and PMT. */
function media(...streams: readonly PmtStream[]): TsBuilder {
  return new TsBuilder().program(streams)
}

function many(count: number, firstPid: number, streamType = 0x1b): PmtStream[] {
  return Array.from({ length: count }, (_, index) => ({ pid: firstPid + index, streamType }))
}

function patOf(first: number, count: number, sectionNumber: number, lastSectionNumber = 7): Buffer {
  const programs = Array.from({ length: count }, (_, index): [number, number] => [
    first + index,
    0x20 + first + index,
  ])
  return patSection(programs, { sectionNumber, lastSectionNumber })
}

/** A PES packet in each transport packet, of all streams in turn, and of all payloads in turn. */
function unitsOf(streams: readonly PmtStream[], ...payloads: readonly Buffer[]): CostlyStream {
  const round = new TsBuilder()
  const turns = 32
  for (let turn = 0; turn < turns; turn++) {
    for (const { pid } of streams) {
      round.unit(
        pid,
        pesPacket(payloads[turn % payloads.length]!, { ptsTicks: turn * FRAME_TICKS }),
      )
    }
  }
  return { opening: media(...streams), round, roundTicks: turns * FRAME_TICKS }
}

function unitsAt(
  streams: readonly PmtStream[],
  payload: Buffer,
  ticksOf: (turn: number) => number,
  stepTicks = 0,
): CostlyStream {
  const round = new TsBuilder()
  for (let turn = 0; turn < 64; turn++) {
    for (const { pid } of streams) round.unit(pid, pesPacket(payload, { ptsTicks: ticksOf(turn) }))
  }
  return { opening: media(...streams), round, roundTicks: 64 * stepTicks }
}

/** Endless payloads of seven packets, with continuous counters. */
export function* payloadsOf({
  opening,
  round,
  roundTicks = 0,
  keepsCounters = false,
}: CostlyStream): Generator<Buffer, never> {
  const counters = new Map<number, number>()
  let payload = Buffer.allocUnsafeSlow(PAYLOAD_BYTES)
  let length = 0
  let sinceOpening = Infinity
  for (let rounds = -1; ; rounds++) {
    const opens = sinceOpening >= OPENING_EACH_PACKETS
    if (opens) sinceOpening = 0
    for (const packet of opens ? [...opening.packets, ...round.packets] : round.packets) {
      sinceOpening++
      packet.copy(payload, length)
      if (!keepsCounters && packet[0] === 0x47 && (packet[3]! & 0x10) !== 0) {
        const pid = packet.readUInt16BE(1) & 0x1fff
        const counter = ((counters.get(pid) ?? 15) + 1) & 15
        counters.set(pid, counter)
        payload[length + 3] = (packet[3]! & 0xf0) | counter
      }
      if (roundTicks !== 0 && rounds > 0) movePesTimes(payload, length, rounds * roundTicks)
      length += PACKET_BYTES
      if (length < PAYLOAD_BYTES) continue
      yield payload
      payload = Buffer.allocUnsafeSlow(PAYLOAD_BYTES)
      length = 0
    }
  }
}
