/** Frames of video that is cut into PES packets anywhere, against the same video with a frame in each PES packet. */
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import t from 'tap'
import { createDemuxerStats } from '../../../src/mpegts/demux/demuxer-stats.ts'
import {
  FrameSplitter,
  type FramePes,
  type VideoPes,
} from '../../../src/mpegts/demux/frame-splitter.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { readNalUnits } from '../../support/annex-b.ts'
import { demux, payloadOf, readFixture, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder, tsPacket } from '../ts-builder.ts'

const PID = 0x100

/** More than what is read of a slice. */
const SLICE_HEAD_BYTES = 96

const isSlice = (header: number, streamType: number) =>
  streamType === 0x1b ? [1, 5].includes(header & 31) : header >> 1 < 32

function endsInSliceHead(bytes: Buffer, streamType: number): boolean {
  const at = bytes.lastIndexOf(Buffer.from([0, 0, 1])) + 3
  const isCut = at < bytes.length && bytes.length - at < SLICE_HEAD_BYTES
  return isCut && isSlice(bytes[at]!, streamType)
}

const slicesOf = (payload: Buffer, streamType: number) =>
  readNalUnits(payload).filter((nal) => isSlice(nal[0]!, streamType))

interface Frame {
  readonly payload: Buffer
  readonly ptsTicks: number
  readonly dtsTicks: number
}

interface Source {
  readonly streamType: number
  readonly frames: readonly Frame[]
}

/** Video of a fixture, by frames; two fields are one. */
function videoOf(name: string): Source {
  const units = unitsOf(demux(readFixture(name))).filter(({ track }) => track.kind === 'video')
  const frames: Frame[] = []
  for (const unit of units) {
    const payload = payloadOf(unit)
    const { ptsTicks, dtsTicks, startsFrame } = unit
    if (startsFrame) frames.push({ payload, ptsTicks, dtsTicks })
    else {
      const first = frames.pop()!
      frames.push({ ...first, payload: Buffer.concat([first.payload, payload]) })
    }
  }
  return { streamType: units[0]!.track.streamType, frames }
}

interface PesCut {
  /** Elementary stream bytes of each PES packet, used in turn. */
  readonly sizes: readonly number[]
  /** Whether each PES packet in which a frame begins has a PTS, used in turn; the first always has. */
  readonly stamps?: readonly boolean[]
  readonly bounded?: boolean
}

/** Muxes video in PES packets of any size, with the PTS of the first frame that begins in each. */
function mux({ streamType, frames }: Source, { sizes, stamps = [true], bounded }: PesCut): Buffer {
  const stream = Buffer.concat(frames.map(({ payload }) => payload))
  const starts = new Map<number, Frame>()
  let size = 0
  for (const frame of frames) {
    starts.set(size, frame)
    size += frame.payload.length
  }
  const ts = new TsBuilder().program([{ pid: PID, streamType }])
  let turn = 0
  for (let at = 0; at < stream.length; turn++) {
    let end = Math.min(stream.length, at + sizes[turn % sizes.length]!)
    // Before it is known that PES packets cut frames, a slice that ends with one is taken for whole.
    if (turn === 0 && endsInSliceHead(stream.subarray(at, end), streamType)) end += SLICE_HEAD_BYTES
    // In which PES packet does a frame begin whose first zero byte is in the one before its start code? Muxers do not agree.
    if (starts.has(end - 1)) end--
    const begins = [...starts.keys()].find((start) => start >= at && start < end)
    const isStamped = begins !== undefined && (turn === 0 || stamps[turn % stamps.length])
    const { ptsTicks, dtsTicks } = (isStamped ? starts.get(begins) : undefined) ?? {}
    const length = bounded === true && end - at < 60_000 ? 'true' : 'none'
    ts.unit(PID, pesPacket(stream.subarray(at, end), { ptsTicks, dtsTicks, length }))
    at = end
  }
  return ts.bytes
}

/**
 * Frames as the demuxer outputs them: continuations added to the frame before. What precedes the first slice is passed on
 * before it is known that PES packets cut frames, and again with its frame.
 */
function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  for (const unit of unitsOf(demux(bytes), PID)) {
    const payload = payloadOf(unit)
    if (unit.startsFrame) frames.push({ ...timesOf(unit), payload })
    else {
      const first = frames.pop()
      if (first !== undefined)
        frames.push({ ...first, payload: Buffer.concat([first.payload, payload]) })
    }
  }
  return frames
}

const timesOf = ({ ptsTicks, dtsTicks }: PesUnit) => ({ ptsTicks, dtsTicks })

/** @throws unless the frames are those sent, with times that are at most a tick off */
function checkFrames(frames: readonly Frame[], { frames: sent, streamType }: Source): void {
  if (frames.length !== sent.length) throw new Error(`${frames.length} frames`)
  for (const [index, { payload, ptsTicks, dtsTicks }] of frames.entries()) {
    const { payload: sentPayload, ...times } = sent[index]!
    // What precedes the slices of the first may have been passed on in PES packets of its own, and parameter sets are inserted.
    const isSame =
      index === 0
        ? isDeepStrictEqual(slicesOf(payload, streamType), slicesOf(sentPayload, streamType))
        : payload.equals(sentPayload)
    if (!isSame) throw new Error(`frame ${index} differs`)
    const [ptsDrift, dtsDrift] = [ptsTicks - times.ptsTicks, dtsTicks - times.dtsTicks]
    const driftTicks = Math.max(Math.abs(ptsDrift), Math.abs(dtsDrift))
    if (driftTicks > 1) throw new Error(`frame ${index} is off by ${ptsDrift}, ${dtsDrift} ticks`)
  }
}

/** Clips of 30 frames/s with B pictures; the second has open GOPs. */
const SOURCES = ['h264-aac', 'h264-open-gop', 'h265-aac'].map(
  (name) => [name, videoOf(name)] as const,
)

const pieceSizes = fc.array(fc.integer({ min: 64, max: 5000 }), { minLength: 1, maxLength: 8 })

for (const [name, source] of SOURCES) {
  t.test(`${name}: frames are as sent, however PES packets cut them`, async () => {
    fc.assert(
      fc.property(pieceSizes, fc.boolean(), (sizes, bounded) => {
        checkFrames(framesOf(mux(source, { sizes, bounded })), source)
      }),
      { numRuns: 60 },
    )
  })
}

for (const [name, source] of SOURCES) {
  t.test(`${name}: frames without a PTS go on from those with one`, async () => {
    const stamps = fc.array(fc.boolean(), { minLength: 2, maxLength: 6 })
    fc.assert(
      fc.property(pieceSizes, stamps, (sizes, stamps) => {
        checkFrames(framesOf(mux(source, { sizes, stamps: [true, ...stamps] })), source)
      }),
      { numRuns: 60 },
    )
  })
}

t.test('a frame ends before a start code that ends a PES packet', async () => {
  for (const [, source] of SOURCES) {
    const [frame] = source.frames
    for (const codeBytes of [4, 5]) {
      const firstBytes = frame!.payload.length + codeBytes
      checkFrames(framesOf(mux(source, { sizes: [firstBytes, 5000] })), source)
    }
  }
})

/** PES packet of frames with so many bytes each, without parameter sets. */
function pesOf(frames: number, sizeBytes: number): VideoPes {
  const frame = Buffer.alloc(sizeBytes, 0xaa)
  frame.set([0, 0, 0, 1, 0x09, 0xf0, 0, 0, 0, 1, 0x65])
  return {
    ...{ chunks: [tsPacket({ pid: PID })], sizeBytes: 188, headerBytes: 14 },
    payload: Buffer.concat(Array.from({ length: frames }, () => frame)),
    ...{ damaged: false, afterLoss: false, packetNumber: 1 },
  }
}

t.test('frames before the first PTS are dropped, however many, and none after it', async (t) => {
  const splitter = new FrameSplitter('h264', createDemuxerStats())
  for (let sec = 0; sec < 8; sec++) t.strictSame(splitter.push(pesOf(10, 100_000), undefined), [])
  const frames: FramePes[] = []
  for (let ticks = 0; ticks < 300_000; ticks += 30_000) {
    const times = { ptsTicks: ticks, dtsTicks: ticks }
    frames.push(...(splitter.push(pesOf(10, 100_000), times) ?? []))
  }
  frames.push(...splitter.flush())
  t.strictSame(
    frames.map(({ times }) => times.dtsTicks),
    Array.from({ length: 100 }, (_, index) => index * 3000),
  )
})

t.test('what is held of a frame that does not end is bounded, in bytes and pieces', async (t) => {
  for (const sizeBytes of [1, 100_000]) {
    const stats = createDemuxerStats()
    const splitter = new FrameSplitter('h264', stats)
    const times = { ptsTicks: 0, dtsTicks: 0 }
    splitter.push(pesOf(2, 1000), times)
    const rest = { ...pesOf(1, 1000), payload: Buffer.alloc(sizeBytes, 0xaa) }
    for (let count = 0; count < 33_000 && stats.oversizedPes === 0; count++) {
      splitter.push(rest, undefined)
    }
    t.equal(stats.oversizedPes, 1)
    const frames = [...splitter.push(pesOf(2, 1000), times)!, ...splitter.flush()]
    t.strictSame(
      frames.map(({ pes }) => pes.payload.length),
      [1000, 1000],
    )
  }
})

t.test(
  'the frames of a PES packet are bounded, and what is beyond is one damaged frame',
  async (t) => {
    const stats = createDemuxerStats()
    const splitter = new FrameSplitter('h264', stats)
    const times = { ptsTicks: 0, dtsTicks: 0 }
    const frames = [...splitter.push(pesOf(20_000, 16), times)!, ...splitter.flush()]
    t.equal(frames.length, 256)
    t.equal(frames.at(-1)!.pes.payload.length, 16 * (20_000 - 255))
    t.strictSame(
      frames.map(({ pes }) => pes.damaged),
      frames.map((_, index) => index === 255),
    )
    t.equal(stats.oversizedPes, 1)
  },
)

t.test('a lost PES packet damages the frames that were cut by it, and no other', async (t) => {
  const [, source] = SOURCES[0]!
  const sent = mux(source, { sizes: [400], bounded: true })
  const isStart = (at: number) => (sent[at + 1]! & 0x40) !== 0
  const starts: number[] = []
  for (let at = 0; at < sent.length; at += 188) if (isStart(at)) starts.push(at)
  // Behind the packets of PAT and PMT.
  const [from, to] = [starts[2 + 20]!, starts[2 + 21]!]
  const units = unitsOf(demux(Buffer.concat([sent.subarray(0, from), sent.subarray(to)])), PID)
  const payloads = new Set(source.frames.map(({ payload }) => payload.toString('latin1')))
  const whole = units.filter((unit) => payloads.has(payloadOf(unit).toString('latin1')))
  t.ok(units.some(({ damaged }) => damaged))
  t.ok(whole.length > source.frames.length - 5, `${whole.length} frames are whole`)
  for (const unit of units.slice(2)) {
    t.equal(unit.damaged, !whole.includes(unit), `DTS ${unit.dtsTicks}`)
  }
})
