/**
 * An encoder and a demuxer in one: what a demuxer puts out for media of this or that make, without running either.
 *
 * @module
 */
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer-output.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import type { Program, Track } from '../../src/mpegts/track.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'

export const VIDEO: Track = {
  pid: 256,
  streamType: 0x1b,
  kind: 'video',
  codec: 'h264',
  descriptors: Buffer.alloc(0),
  parameters: { codecString: 'avc1.42c00d', width: 320, height: 180, frameRate: 30 },
}

export const AUDIO: Track = {
  pid: 257,
  streamType: 0x0f,
  kind: 'audio',
  codec: 'aac',
  descriptors: Buffer.alloc(0),
  parameters: { codecString: 'mp4a.40.2', sampleRate: 48000, channels: 2 },
}

export function programOf(...tracks: Track[]): Program {
  return { programNumber: 1, pcrPid: tracks[0]?.pid ?? 0x1fff, tracks }
}

export function program(value: Program, layoutChanged = false): DemuxerOutput {
  return { type: 'program', program: value, layoutChanged }
}

export function unit(value: PesUnit): DemuxerOutput {
  return { type: 'unit', unit: value }
}

export interface PictureOptions {
  readonly key?: boolean
  readonly damaged?: boolean
  /** How much later it is shown than decoded; 0 unless told. */
  readonly reorderTicks?: number
  readonly sizeBytes?: number
}

export function picture(dtsTicks: number, options: PictureOptions = {}): PesUnit {
  const { key = false, damaged = false, reorderTicks = 0, sizeBytes = 400 } = options
  const ptsTicks = dtsTicks + reorderTicks
  const times = { ptsTicks, dtsTicks }
  const payload = h264AccessUnit({ key, sizeBytes })
  const pes = pesPacket(payload, { ...times, length: 'none' })
  const { bytes } = new TsBuilder().unit(VIDEO.pid, pes)
  return {
    ...{ track: VIDEO, chunks: [bytes], sizeBytes: bytes.length, randomAccess: key, damaged },
    ...{ gradualRefresh: false, decodableLeading: false, startsFrame: true },
    ...times,
  }
}

export function sound(
  ptsTicks: number,
  options: { frames?: number; damaged?: boolean } = {},
): PesUnit {
  const { frames = 8, damaged = false } = options
  const pes = pesPacket(adtsFrames(frames), { ptsTicks, streamId: 0xc0 })
  const { bytes } = new TsBuilder().unit(AUDIO.pid, pes)
  return {
    ...{ track: AUDIO, chunks: [bytes], sizeBytes: bytes.length, randomAccess: true, damaged },
    ...{ gradualRefresh: false, decodableLeading: false, startsFrame: true },
    ...{ ptsTicks, dtsTicks: ptsTicks },
  }
}

/** The same unit on the PID of another track. */
export function moved(value: PesUnit, track: Track): PesUnit {
  const bytes = Buffer.concat(value.chunks)
  for (let at = 0; at < bytes.length; at += 188) {
    bytes.writeUInt16BE((bytes.readUInt16BE(at + 1) & 0xe000) | track.pid, at + 1)
  }
  return { ...value, track, chunks: [bytes] }
}

export interface ClipOptions {
  /** Time of the first picture; 10 s unless told. */
  readonly fromTicks?: number
  readonly frames: number
  readonly framesPerGop: number
  /** 90,000 over the frame rate; 3000 unless told. */
  readonly frameTicks?: number
  /** Presentation lags decoding by as many frames; 0 unless told. */
  readonly reorderFrames?: number
  readonly pictureBytes?: number
}

export const CLIP_START_TICKS = 900_000

/** Pictures at a constant rate, every so many of them a key frame. */
export function pictures(options: ClipOptions): PesUnit[] {
  const { fromTicks = CLIP_START_TICKS, frameTicks = 3000, reorderFrames = 0 } = options
  return Array.from({ length: options.frames }, (_, index) =>
    picture(fromTicks + index * frameTicks, {
      key: index % options.framesPerGop === 0,
      reorderTicks: reorderFrames * frameTicks,
      ...(options.pictureBytes !== undefined && { sizeBytes: options.pictureBytes }),
    }),
  )
}

/** 8 AAC frames. */
export const SOUND_TICKS = 15_360

/** Sound of as many PES packets, one after the other. */
export function sounds(fromTicks: number, count: number): PesUnit[] {
  return Array.from({ length: count }, (_, index) => sound(fromTicks + index * SOUND_TICKS))
}

/** Units of several tracks in the order of their times, each track delayed as told. */
export function interleave(
  ...lanes: { units: readonly PesUnit[]; delayTicks?: number }[]
): PesUnit[] {
  return lanes
    .flatMap(({ units, delayTicks = 0 }) =>
      units.map((value) => ({ value, at: value.dtsTicks + delayTicks })),
    )
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value)
}

/** A program of video alone, and its units. */
export function videoClip(options: ClipOptions): DemuxerOutput[] {
  return [program(programOf(VIDEO)), ...pictures(options).map(unit)]
}
