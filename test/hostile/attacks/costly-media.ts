/**
 * Transport streams of 10 Mbit/s whose frames and NAL units are as small as they can be, or are none. Video has 30
 * frames a second.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { loas } from '../../codec/latm-builder.ts'
import { demux, payloadOf, unitsOf } from '../../mpegts/demux.ts'
import { pesPacket, TsBuilder } from '../../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../../support/access-units.ts'
import type { CostlyStream } from './costly-streams.ts'

const FRAME_TICKS = 3000
const FRAMES_PER_SEC = 30
/** Size of a frame at 10 Mbit/s; a PES_packet_length can express it. */
const FRAME_BYTES = 41_000
/** Frames of video for one PES packet, or access unit, of 4 MB. */
const LONG = 100

const VIDEO_PID = 0x100
const AUDIO_PID = 0x200

/** Streams by name. */
export const COSTLY_MEDIA: Readonly<Record<string, () => CostlyStream>> = {
  'none: ADTS frames of 1366 bytes': () => audio(0x0f, [adtsFrames(1, 1366)]),
  'ADTS frames of 8 bytes': () => audio(0x0f, [adts()]),
  'ADTS frames of 8 bytes, two formats in turn': () => audio(0x0f, [adts(), adts(4)]),
  'ADTS frames of 8 bytes, two formats in pairs': () =>
    audio(0x0f, [adts(), adts(), adts(4), adts(4)]),
  'ADTS frames of 8 bytes, 16 tracks': () => audio(0x0f, [adts()], { tracks: 16 }),
  'ADTS frames of 8 bytes in PES packets of 4 MB': () => audio(0x0f, [adts()], { every: LONG }),
  'ADTS sync bytes alone': () => audio(0x0f, [hex('ff')]),
  'ADTS headers alone': () => audio(0x0f, [hex('fff14c80011ffc')]),
  'MPEG audio frames of 24 bytes': () =>
    audio(0x03, [Buffer.concat([hex('fff314c4'), Buffer.alloc(20, 0x55)])]),
  'AC-3 sync words alone': () => audio(0x81, [hex('0b77')]),
  'E-AC-3 frames of 8 bytes in an AC-3 track': () => {
    const sample = [...times(5, eac3()), ...times(42, eac3({ substreamId: 1 })), hex('0000')]
    return audio(0x81, [...times(2, eac3({ blocks: 6 })), ...times(107, ...sample)])
  },
  'E-AC-3 frames of 8 bytes, six blocks each': () => audio(0x87, [eac3({ blocks: 6 })]),
  'E-AC-3 frames of 8 bytes, one block each': () => audio(0x87, [eac3()]),
  'E-AC-3 frames of 8 bytes, two formats in turn': () =>
    audio(0x87, [eac3({ blocks: 6 }), eac3({ blocks: 6, rateCode: 1 })]),
  'E-AC-3 frames of 8 bytes, 48 to a sample of another format': () => {
    const sample = (coding: number) =>
      times(6, eac3({ coding }), ...times(7, eac3({ substreamId: 1 })))
    const other = eac3({ blocks: 6, rateCode: 1 })
    return audio(0x87, [...sample(2), other, ...sample(7), other])
  },
  'E-AC-3 frames that depend on none': () => audio(0x87, [eac3({ type: 1 })]),
  'E-AC-3 that is never whole, a PES packet a packet': () => {
    const parts = times(57, eac3({ substreamId: 1, words: 75 }))
    return smallAudio(0x87, [Buffer.concat([eac3(), eac3({ substreamId: 1 })]), ...parts])
  },
  'LATM elements of 64 frames of 1 byte': () =>
    audio(0x11, [loas({ subFrames: 64 }, ...times(64, hex('21')))]),
  'LATM elements of one frame of 1 byte': () =>
    audio(0x11, [loas({}, hex('21')), ...times(200, loas(undefined, hex('21')))]),
  'NAL units of 1 byte behind a slice': () => video(hex('0000010c')),
  'NAL units of 1 byte behind a slice, H.265': () => video(hex('0000017e01'), { h265: true }),
  'NAL units of 1 byte in access units of 4 MB': () => video(hex('0000010c'), { every: LONG }),
  'parameter sets behind a slice': () => video(hex('000001678042000001688042')),
  'parameter sets behind a slice, H.265': () => video(hex('000001420180'), { h265: true }),
  'parameter sets before a slice': () => video(hex('0000016780'), { isFirst: true }),
  'parameter sets before a slice in access units of 4 MB': () =>
    video(hex('0000016780'), { isFirst: true, every: LONG }),
  'one NAL unit, a PES packet a packet': () =>
    media([], 1, (round, frame, ptsTicks) => {
      const pes = (payload: Buffer) => pesPacket(payload, { ptsTicks, length: 'none' })
      round.unit(VIDEO_PID, pes(smallFrame(frame)))
      for (let part = 0; part < 200; part++) round.unit(VIDEO_PID, pes(Buffer.alloc(160, 0xaa)))
    }),
  'start codes behind a slice': () => video(hex('000001')),
  'zeros and ones behind a slice': () => video(hex('0001')),
}

interface AudioOptions {
  readonly tracks?: number
  /** Frames of video for each PES packet; default 1. */
  readonly every?: number
}

/** Video of small frames beside audio of these frames in turn. */
function audio(
  streamType: number,
  frames: readonly Buffer[],
  { tracks = 1, every = 1 }: AudioOptions = {},
): CostlyStream {
  const streams = Array.from({ length: tracks }, (_, index) => ({
    pid: AUDIO_PID + index,
    streamType,
  }))
  const payload = fill(Buffer.concat(frames), (FRAME_BYTES * every) / tracks)
  const streamId = streamType === 0x81 || streamType === 0x87 ? 0xbd : 0xc0
  const length = every === 1 ? 'true' : 'none'
  return media(streams, every, (round, frame, ptsTicks) => {
    round.unit(VIDEO_PID, pesPacket(smallFrame(frame), { ptsTicks }))
    if (frame % every > 0) return
    for (const { pid } of streams)
      round.unit(pid, pesPacket(payload, { ptsTicks, streamId, length }))
  })
}

/** The same, with each payload in a PES packet of one transport packet. */
function smallAudio(streamType: number, payloads: readonly Buffer[]): CostlyStream {
  return media([{ pid: AUDIO_PID, streamType }], 1, (round, frame, ptsTicks) => {
    round.unit(VIDEO_PID, pesPacket(smallFrame(frame), { ptsTicks }))
    for (const payload of times(4, ...payloads))
      round.unit(AUDIO_PID, pesPacket(payload, { ptsTicks, streamId: 0xbd }))
  })
}

interface VideoOptions {
  readonly h265?: boolean
  /** Frames for each access unit that is filled; default 1. */
  readonly every?: number
  /** Whether the filling precedes the slice. */
  readonly isFirst?: boolean
}

/** Video whose access units have a small slice, and are filled with these bytes. */
function video(
  bytes: Buffer,
  { h265 = false, every = 1, isFirst = false }: VideoOptions = {},
): CostlyStream {
  const filling = fill(bytes, FRAME_BYTES * every)
  const key = h265 ? h265AccessUnit() : undefined
  return media(
    [],
    every,
    (round, frame, ptsTicks) => {
      const unit = key ?? smallFrame(frame)
      const parts = frame % every > 0 ? [unit] : isFirst ? [filling, unit] : [unit, filling]
      round.unit(VIDEO_PID, pesPacket(Buffer.concat(parts), { ptsTicks, length: 'none' }))
    },
    h265,
  )
}

function media(
  audios: readonly { readonly pid: number; readonly streamType: number }[],
  every: number,
  add: (round: TsBuilder, frame: number, ptsTicks: number) => void,
  h265 = false,
): CostlyStream {
  const frames = Math.max(FRAMES_PER_SEC, every)
  const video = { pid: VIDEO_PID, streamType: h265 ? 0x24 : 0x1b }
  const round = new TsBuilder()
  for (let frame = 0; frame < frames; frame++) add(round, frame, frame * FRAME_TICKS)
  const opening = new TsBuilder().program([video, ...audios])
  return { opening, round, roundTicks: frames * FRAME_TICKS }
}

function smallFrame(frame: number): Buffer {
  return h264AccessUnit({ key: frame % FRAMES_PER_SEC === 0, sizeBytes: 100 })
}

/** The first access unit of a clip: a key frame. */
function h265AccessUnit(): Buffer {
  const units = unitsOf(demux(readFileSync('fixtures/h265-aac.mpegts')))
  return payloadOf(units.find(({ track, randomAccess }) => track.kind === 'video' && randomAccess)!)
}

/** @param rateIndex  `sampling_frequency_index`; default 48 kHz */
function adts(rateIndex = 3): Buffer {
  const frame = adtsFrames(1, 8)
  frame[2] = 0x40 | (rateIndex << 2)
  return frame
}

interface Eac3Fields {
  /** `strmtyp`: 1 for a syncframe that depends on another one. */
  readonly type?: number
  readonly substreamId?: number
  readonly words?: number
  /** `fscod`. */
  readonly rateCode?: number
  readonly blocks?: 1 | 6
  /** `acmod`. */
  readonly coding?: number
}

/** A syncframe of 48 kHz (ETSI TS 102 366 E.1.2). */
function eac3(fields: Eac3Fields = {}): Buffer {
  const { type = 0, substreamId = 0, words = 4, rateCode = 0, blocks = 1, coding = 7 } = fields
  const frame = Buffer.alloc(words * 2)
  frame.writeUInt16BE(0x0b77, 0)
  frame.writeUInt16BE((type << 14) | (substreamId << 11) | (words - 1), 2)
  frame[4] = (rateCode << 6) | ((blocks === 6 ? 3 : 0) << 4) | (coding << 1)
  frame[5] = 16 << 3
  return frame
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}

function times(count: number, ...pieces: readonly Buffer[]): Buffer[] {
  return Array.from({ length: count }, () => pieces).flat()
}

/** Repeats the bytes as a whole, up to about this size. */
function fill(bytes: Buffer, sizeBytes: number): Buffer {
  return Buffer.concat(times(Math.max(1, Math.floor(sizeBytes / bytes.length)), bytes))
}
