/**
 * Demuxer outputs for generated media, without an encoder or a demuxer.
 *
 * @module
 */
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
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

export interface VideoUnitOptions {
  readonly key?: boolean
  readonly damaged?: boolean
  /** PTS minus DTS; default 0. */
  readonly reorderTicks?: number
  readonly sizeBytes?: number
  /** Default false. */
  readonly newParameters?: boolean
}

export function videoUnit(dtsTicks: number, options: VideoUnitOptions = {}): PesUnit {
  const { key = false, damaged = false, reorderTicks = 0, sizeBytes = 400 } = options
  const { newParameters = false } = options
  const ptsTicks = dtsTicks + reorderTicks
  const times = { ptsTicks, dtsTicks }
  const payload = h264AccessUnit({ key, sizeBytes })
  const pes = pesPacket(payload, { ...times, length: 'none' })
  const { bytes } = new TsBuilder().unit(VIDEO.pid, pes)
  return {
    ...{ track: VIDEO, chunks: [bytes], sizeBytes: bytes.length, randomAccess: key, damaged },
    ...{ newParameters, inBandSets: false, gradualRefresh: false, decodableLeading: false },
    startsFrame: true,
    ...{ payload, ...times },
  }
}

export function audioUnit(
  ptsTicks: number,
  options: { frames?: number; damaged?: boolean } = {},
): PesUnit {
  const { frames = 8, damaged = false } = options
  const payload = adtsFrames(frames)
  const pes = pesPacket(payload, { ptsTicks, streamId: 0xc0 })
  const { bytes } = new TsBuilder().unit(AUDIO.pid, pes)
  return {
    ...{ track: AUDIO, chunks: [bytes], sizeBytes: bytes.length, randomAccess: true, damaged },
    ...{ newParameters: false, inBandSets: false, gradualRefresh: false, decodableLeading: false },
    ...{ payload, startsFrame: true, ptsTicks, dtsTicks: ptsTicks },
  }
}

/** Copy of the unit on the PID of another track. */
export function moved(value: PesUnit, track: Track): PesUnit {
  const bytes = Buffer.concat(value.chunks)
  for (let at = 0; at < bytes.length; at += 188) {
    bytes.writeUInt16BE((bytes.readUInt16BE(at + 1) & 0xe000) | track.pid, at + 1)
  }
  return { ...value, track, chunks: [bytes] }
}

export interface ClipOptions {
  /** DTS of the first frame; default 10 s. */
  readonly fromTicks?: number
  readonly frames: number
  readonly framesPerGop: number
  /** Frame duration in ticks of 90 kHz; default 3000. */
  readonly frameTicks?: number
  /** PTS minus DTS in frames; default 0. */
  readonly reorderFrames?: number
  readonly frameBytes?: number
}

export const CLIP_START_TICKS = 900_000

/** Video at a constant frame rate, with a key frame every `framesPerGop` frames. */
export function videoUnits(options: ClipOptions): PesUnit[] {
  const { fromTicks = CLIP_START_TICKS, frameTicks = 3000, reorderFrames = 0 } = options
  return Array.from({ length: options.frames }, (_, index) =>
    videoUnit(fromTicks + index * frameTicks, {
      key: index % options.framesPerGop === 0,
      reorderTicks: reorderFrames * frameTicks,
      ...(options.frameBytes !== undefined && { sizeBytes: options.frameBytes }),
    }),
  )
}

/** Duration of 8 AAC frames, the content of an audio unit. */
export const AUDIO_UNIT_TICKS = 15_360

/** Consecutive audio units of 8 AAC frames each. */
export function audioUnits(fromTicks: number, count: number): PesUnit[] {
  return Array.from({ length: count }, (_, index) =>
    audioUnit(fromTicks + index * AUDIO_UNIT_TICKS),
  )
}

/** Units of several tracks in order of DTS plus the delay of their track. */
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
  return [program(programOf(VIDEO)), ...videoUnits(options).map(unit)]
}
