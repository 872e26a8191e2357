/**
 * What the bitstream of a PES unit says: may a decoder start here, and with which parameters.
 *
 * @module
 */
import { decodeAc3Header } from '../codec/ac3.ts'
import { decodeAdtsHeader } from '../codec/adts.ts'
import { findAudioFrame, type DecodeAudioFrameHeader } from '../codec/audio-frame.ts'
import { inspectH264AccessUnit } from '../codec/h264.ts'
import { decodeH264Sps } from '../codec/h264-sps.ts'
import { inspectH265AccessUnit } from '../codec/h265.ts'
import { decodeH265Sps } from '../codec/h265-sps.ts'
import { decodeH265VpsFrameRate } from '../codec/h265-vps.ts'
import { decodeMpegAudioHeader } from '../codec/mpeg-audio.ts'
import type { Codec, TrackParameters } from './track.ts'

/** Holds two frames of any codec at usual bit rates, so that one header can vouch for the other. */
const MAX_AUDIO_BYTES = 8192

export interface Inspection {
  readonly randomAccess: boolean
  /** What the codec turned out to be; differs from the stream type's where that stands for several. */
  readonly codec: Codec
  /** Undefined where this unit does not tell. */
  readonly parameters?: TrackParameters
}

const INSPECTORS: Readonly<Record<Codec, (unit: Iterable<Buffer>) => Inspection>> = {
  h264: inspectH264,
  h265: inspectH265,
  aac: (unit) => inspectAudio('aac', unit, decodeAdtsHeader),
  'aac-latm': () => ({ randomAccess: true, codec: 'aac-latm' }),
  mp3: (unit) => inspectAudio('mp3', unit, decodeMpegAudioHeader),
  mp2: (unit) => inspectAudio('mp2', unit, decodeMpegAudioHeader),
  ac3: (unit) => inspectAudio('ac3', unit, decodeAc3Header),
  eac3: (unit) => inspectAudio('eac3', unit, decodeAc3Header),
  unknown: () => ({ randomAccess: true, codec: 'unknown' }),
}

/** @param unit  elementary stream bytes of a PES, in any pieces; no more is read of them than needed */
export function inspectUnit(codec: Codec, unit: Iterable<Buffer>): Inspection {
  return INSPECTORS[codec](unit)
}

function inspectH264(unit: Iterable<Buffer>): Inspection {
  const { randomAccess, sps } = inspectH264AccessUnit(unit)
  const parameters = sps === undefined ? undefined : decodeH264Sps(sps)
  return { randomAccess, codec: 'h264', parameters }
}

function inspectH265(unit: Iterable<Buffer>): Inspection {
  const { randomAccess, vps, sps } = inspectH265AccessUnit(unit)
  const parameters = sps === undefined ? undefined : decodeH265Sps(sps)
  if (parameters === undefined || parameters.frameRate !== undefined || vps === undefined) {
    return { randomAccess, codec: 'h265', parameters }
  }
  const frameRate = decodeH265VpsFrameRate(vps)
  return { randomAccess, codec: 'h265', parameters: { ...parameters, frameRate } }
}

function inspectAudio(
  codec: Codec,
  unit: Iterable<Buffer>,
  decode: DecodeAudioFrameHeader,
): Inspection {
  const header = findAudioFrame(firstBytes(unit, MAX_AUDIO_BYTES), decode)
  return { randomAccess: true, codec: header?.codec ?? codec, parameters: header?.parameters }
}

function firstBytes(unit: Iterable<Buffer>, count: number): Buffer {
  const pieces: Buffer[] = []
  let length = 0
  for (const piece of unit) {
    pieces.push(piece)
    length += piece.length
    if (length >= count) break
  }
  return Buffer.concat(pieces)
}
