/**
 * What the bitstream of a PES unit says: with which parameters it is decoded, and what picture it begins.
 *
 * @module
 */
import { decodeAc3Header } from '../../codec/ac3.ts'
import { decodeAdtsHeader } from '../../codec/adts.ts'
import {
  findAudioFrame,
  readAudioFrame,
  type AudioFrameHeader,
  type DecodeAudioFrameHeader,
} from '../../codec/audio-frame.ts'
import { inspectH264AccessUnit } from '../../codec/h264.ts'
import { decodeH264Sps } from '../../codec/h264-sps.ts'
import { inspectH265AccessUnit } from '../../codec/h265.ts'
import { decodeH265Sps } from '../../codec/h265-sps.ts'
import { decodeH265VpsFrameRate } from '../../codec/h265-vps.ts'
import { decodeMpegAudioHeader } from '../../codec/mpeg-audio.ts'
import type { ParameterSetKind } from '../../codec/parameter-sets.ts'
import type { VideoAccessUnit } from '../../codec/video-access-unit.ts'
import type { Codec, TrackParameters } from '../track.ts'

/** Holds a frame of AAC at 128 kbit/s and the header of the next: most units need no more. */
const USUAL_AUDIO_BYTES = 512

/** Holds two frames of any codec at usual bit rates, so that one header can vouch for the other. */
const MAX_AUDIO_BYTES = 8192

export interface Inspection {
  /** What the codec turned out to be; differs from the stream type's where that stands for several. */
  readonly codec: Codec
  /** Undefined where this unit does not tell. */
  readonly parameters?: TrackParameters
  /** Video only. */
  readonly picture?: VideoAccessUnit
}

/** Opus always runs at this rate (RFC 6716 2); how many channels there are, its packets do not say. */
const OPUS: TrackParameters = { codecString: 'opus', sampleRate: 48_000 }

const INSPECTORS: Readonly<Record<Codec, (unit: Iterable<Buffer>) => Inspection>> = {
  h264: inspectH264,
  h265: inspectH265,
  aac: (unit) => inspectAudio('aac', unit, decodeAdtsHeader),
  'aac-latm': () => ({ codec: 'aac-latm' }),
  mp3: (unit) => inspectAudio('mp3', unit, decodeMpegAudioHeader),
  mp2: (unit) => inspectAudio('mp2', unit, decodeMpegAudioHeader),
  ac3: (unit) => inspectAudio('ac3', unit, decodeAc3Header),
  eac3: (unit) => inspectAudio('eac3', unit, decodeAc3Header),
  opus: () => ({ codec: 'opus', parameters: OPUS }),
  unknown: () => ({ codec: 'unknown' }),
}

/** @param unit  elementary stream bytes of a PES, in any pieces; no more is read of them than needed */
export function inspectUnit(codec: Codec, unit: Iterable<Buffer>): Inspection {
  return INSPECTORS[codec](unit)
}

function inspectH264(unit: Iterable<Buffer>): Inspection {
  const picture = inspectH264AccessUnit(unit)
  const sps = findSet(picture, 'sps')
  return { codec: 'h264', picture, parameters: sps && decodeH264Sps(sps) }
}

function inspectH265(unit: Iterable<Buffer>): Inspection {
  const picture = inspectH265AccessUnit(unit)
  const sps = findSet(picture, 'sps')
  const vps = findSet(picture, 'vps')
  const parameters = sps && decodeH265Sps(sps)
  if (parameters === undefined || parameters.frameRate !== undefined || vps === undefined) {
    return { codec: 'h265', picture, parameters }
  }
  const frameRate = decodeH265VpsFrameRate(vps)
  return { codec: 'h265', picture, parameters: { ...parameters, frameRate } }
}

function findSet({ parameterSets }: VideoAccessUnit, wanted: ParameterSetKind): Buffer | undefined {
  return parameterSets.find(({ kind }) => kind === wanted)?.nal
}

function inspectAudio(
  codec: Codec,
  unit: Iterable<Buffer>,
  decode: DecodeAudioFrameHeader,
): Inspection {
  const pieces: Buffer[] = []
  let length = 0
  let header: AudioFrameHeader | undefined
  for (const piece of unit) {
    const isUsual = length < USUAL_AUDIO_BYTES && length + piece.length >= USUAL_AUDIO_BYTES
    pieces.push(piece)
    length += piece.length
    if (isUsual) header = readAudioFrame(Buffer.concat(pieces), decode)
    if (header !== undefined || length >= MAX_AUDIO_BYTES) break
  }
  header ??= findAudioFrame(Buffer.concat(pieces), decode)
  return { codec: header?.codec ?? codec, parameters: header?.parameters }
}
