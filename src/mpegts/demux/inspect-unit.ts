/**
 * Inspects the bitstream of a PES packet: codec parameters, and for video the kind of its access unit.
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

/** Size of an AAC frame at 128 kbit/s with the header of the next: enough for most PES packets. */
const USUAL_AUDIO_BYTES = 512

/** Size of two frames of any codec at usual bit rates, so that the second header confirms the first. */
const MAX_AUDIO_BYTES = 8192

export interface Inspection {
  /** Codec of the bitstream; differs from that of the track when its stream type stands for several. */
  readonly codec: Codec
  /** Parameters of the bitstream; undefined when this PES packet does not contain them. */
  readonly parameters?: TrackParameters
  /** Access unit of a video track. */
  readonly accessUnit?: VideoAccessUnit
}

/** Opus always decodes to this rate (RFC 6716 2); its packets do not contain the number of channels. */
const OPUS: TrackParameters = { codecString: 'opus', sampleRate: 48_000 }

const INSPECTORS: Readonly<Record<Codec, (bytes: Iterable<Buffer>) => Inspection>> = {
  h264: inspectH264,
  h265: inspectH265,
  aac: (bytes) => inspectAudio('aac', bytes, decodeAdtsHeader),
  'aac-latm': () => ({ codec: 'aac-latm' }),
  mp3: (bytes) => inspectAudio('mp3', bytes, decodeMpegAudioHeader),
  mp2: (bytes) => inspectAudio('mp2', bytes, decodeMpegAudioHeader),
  ac3: (bytes) => inspectAudio('ac3', bytes, decodeAc3Header),
  eac3: (bytes) => inspectAudio('eac3', bytes, decodeAc3Header),
  opus: () => ({ codec: 'opus', parameters: OPUS }),
  unknown: () => ({ codec: 'unknown' }),
}

/** @param bytes  elementary stream bytes of a PES packet in any pieces, read only as far as needed */
export function inspectUnit(codec: Codec, bytes: Iterable<Buffer>): Inspection {
  return INSPECTORS[codec](bytes)
}

function inspectH264(bytes: Iterable<Buffer>): Inspection {
  const accessUnit = inspectH264AccessUnit(bytes)
  const sps = findSet(accessUnit, 'sps')
  return { codec: 'h264', accessUnit, parameters: sps && decodeH264Sps(sps) }
}

function inspectH265(bytes: Iterable<Buffer>): Inspection {
  const accessUnit = inspectH265AccessUnit(bytes)
  const sps = findSet(accessUnit, 'sps')
  const vps = findSet(accessUnit, 'vps')
  const parameters = sps && decodeH265Sps(sps)
  if (parameters === undefined || parameters.frameRate !== undefined || vps === undefined) {
    return { codec: 'h265', accessUnit, parameters }
  }
  const frameRate = decodeH265VpsFrameRate(vps)
  return { codec: 'h265', accessUnit, parameters: { ...parameters, frameRate } }
}

function findSet({ parameterSets }: VideoAccessUnit, wanted: ParameterSetKind): Buffer | undefined {
  return parameterSets.find(({ kind }) => kind === wanted)?.nal
}

function inspectAudio(
  codec: Codec,
  bytes: Iterable<Buffer>,
  decode: DecodeAudioFrameHeader,
): Inspection {
  const pieces: Buffer[] = []
  let length = 0
  let header: AudioFrameHeader | undefined
  for (const piece of bytes) {
    const isUsual = length < USUAL_AUDIO_BYTES && length + piece.length >= USUAL_AUDIO_BYTES
    pieces.push(piece)
    length += piece.length
    if (isUsual) header = readAudioFrame(Buffer.concat(pieces), decode)
    if (header !== undefined || length >= MAX_AUDIO_BYTES) break
  }
  header ??= findAudioFrame(Buffer.concat(pieces), decode)
  return { codec: header?.codec ?? codec, parameters: header?.parameters }
}
