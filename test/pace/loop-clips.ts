/**
 * Hand-made clips of H.264 and AAC for loops, and what a loop of one has become.
 *
 * @module
 */
import type { Test } from 'tap'
import { Packager } from '../../src/hls/packager.ts'
import { Demuxer, type DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import { ClipRemuxer } from '../../src/pace/clip-remuxer.ts'
import { LoopedClip } from '../../src/pace/looped-clip.ts'
import type { PacedDatagram } from '../../src/pace/paced-stream.ts'
import { unitsOf } from '../mpegts/demux.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'

export const VIDEO_PID = 0x100
export const AUDIO_PID = 0x101

/** 30 frames per second. */
export const VIDEO_TICKS = 3000
/** 1024 samples of 48 kHz. */
export const AUDIO_TICKS = 1920

const ADTS_BYTES = 64
/** Offset of the number of the frame in the file. */
export const NUMBER_AT = 20

interface ClipShape {
  readonly videoFrames: number
  readonly audioFrames: number
  /** AAC frames of a PES packet; default 8. */
  readonly framesPerPes?: number
  /** Distance of key frames; default 30 frames. */
  readonly gop?: number
  /** Whether every other frame is a B-frame. */
  readonly reordered?: boolean
  /** Time of the first frame; default 10 s. */
  readonly startTicks?: number
  /** Frames before the first key frame. */
  readonly cutFrames?: number
}

/** Audio begins a third of its frame after the video, as from encoders. */
export function buildClip(shape: ClipShape): Buffer {
  const { videoFrames, audioFrames, framesPerPes = 8, gop = 30, reordered = false } = shape
  const { startTicks = 900_000, cutFrames = 0 } = shape
  const media: { dtsTicks: number; pid: number; pes: Buffer }[] = []
  for (let frame = 0; frame < videoFrames; frame++) {
    const dtsTicks = startTicks + frame * VIDEO_TICKS
    // In decoding order: I0 P2 B1 P4 B3 …; the DTS is a frame early.
    const shown = !reordered || frame === 0 ? frame : frame % 2 === 1 ? frame + 1 : frame - 1
    const isLastP = reordered && shown === videoFrames
    const ptsTicks = startTicks + ((isLastP ? frame : shown) + (reordered ? 1 : 0)) * VIDEO_TICKS
    const key = frame >= cutFrames && (frame - cutFrames) % gop === 0
    const payload = h264AccessUnit({ key, sizeBytes: key ? 3000 : 500 })
    media.push({ dtsTicks, pid: VIDEO_PID, pes: pesPacket(payload, { ptsTicks, dtsTicks }) })
  }
  for (let frame = 0; frame < audioFrames; frame += framesPerPes) {
    const dtsTicks = startTicks + (reordered ? VIDEO_TICKS : 0) + 640 + frame * AUDIO_TICKS
    const payload = adtsFrames(Math.min(framesPerPes, audioFrames - frame))
    for (let at = 0; at < payload.length; at += ADTS_BYTES)
      payload.writeUInt16BE(frame + at / ADTS_BYTES, at + NUMBER_AT)
    const pes = pesPacket(payload, { ptsTicks: dtsTicks, streamId: 0xc0 })
    media.push({ dtsTicks, pid: AUDIO_PID, pes })
  }
  const ts = new TsBuilder().program([
    { pid: VIDEO_PID, streamType: 0x1b },
    { pid: AUDIO_PID, streamType: 0x0f },
  ])
  for (const { pid, pes } of media.toSorted((a, b) => a.dtsTicks - b.dtsTicks)) ts.unit(pid, pes)
  return ts.bytes
}

export function remux(file: Buffer): Buffer {
  const remuxer = new ClipRemuxer()
  // As a file is read: pieces that cut packets.
  for (let at = 0; at < file.length; at += 10_000) remuxer.push(file.subarray(at, at + 10_000))
  return remuxer.end()
}

export function payloadsOf(datagrams: readonly PacedDatagram[]): Buffer[] {
  return datagrams.map(({ payload }) => payload)
}

/** Plays a clip from its start. */
export function play(clip: Buffer, sec: number): Buffer[] {
  const looped = new LoopedClip(clip)
  const payloads: Buffer[] = []
  for (let us = 0; us <= sec * 1e6; us += 100_000)
    payloads.push(...payloadsOf(looped.takeUntil(us)))
  return payloads
}

export interface Loop {
  readonly units: readonly PesUnit[]
  /** DTS of all PES packets of a kind. */
  readonly times: (kind: 'video' | 'audio') => number[]
  readonly discontinuities: number
}

/** Demuxes and packages a loop, and checks that there is no error in it. */
export function inspect(t: Test, payloads: readonly Buffer[]): Loop {
  const demuxer = new Demuxer()
  const outputs: DemuxerOutput[] = []
  for (const payload of payloads) outputs.push(...demuxer.push(payload))
  const { stats } = demuxer
  t.equal(stats.continuityErrors, 0, 'no packet is missing')
  t.equal(stats.duplicatePackets, 0, 'no packet twice')
  t.equal(stats.skippedBytes + stats.malformedPes + stats.orphanPackets, 0, 'all is media')
  const packager = new Packager({
    ...{ epoch: 'e', formats: ['ts', 'cmaf'], segmentSec: 1, maxSegmentSec: 10, partSec: 0.2 },
  })
  for (const output of outputs) packager.push(output, 1e12)
  packager.end()
  const { discontinuities, droppedAudioPackets, forcedCuts } = packager.stats
  t.equal(droppedAudioPackets, 0, 'all audio is in a segment')
  t.equal(forcedCuts, 0, 'each segment begins with a key frame')
  const units = unitsOf(outputs)
  return {
    units,
    times: (kind) =>
      units.filter(({ track }) => track.kind === kind).map(({ dtsTicks }) => dtsTicks),
    discontinuities,
  }
}

/** Steps between times, each once. */
export function stepsOf(times: readonly number[]): number[] {
  return [...new Set(times.slice(1).map((ticks, index) => ticks - times[index]!))].toSorted(
    (a, b) => a - b,
  )
}
