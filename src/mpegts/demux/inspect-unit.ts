/**
 * Inspects the bitstream of a PES packet: codec parameters, and for video the kind of its access unit.
 *
 * @module
 */
import { AUDIO_DECODERS } from '../../codec/audio-decoders.ts'
import { findAudioFrame, type DecodeAudioFrameHeader } from '../../codec/audio-frame.ts'
import { inspectH264AccessUnit } from '../../codec/h264.ts'
import { decodeH264Sps } from '../../codec/h264-sps.ts'
import { inspectH265AccessUnit } from '../../codec/h265.ts'
import { decodeH265Sps, decodeH265VpsFrameRate } from '../../codec/h265-parameter-sets.ts'
import type { ParameterSetKind } from '../../codec/parameter-sets.ts'
import type { VideoAccessUnit } from '../../codec/video-access-unit.ts'
import { type VideoParameters, videoRangeOf } from '../../codec/video-parameters.ts'
import type { Codec, TrackParameters } from '../track.ts'

interface Inspection {
  /** Codec of the bitstream; differs from the track's codec when the stream type stands for several codecs. */
  readonly codec: Codec
  /** Parameters of the bitstream; undefined when this PES packet does not contain them. */
  readonly parameters?: TrackParameters
  /** Access unit of a video track. */
  readonly accessUnit?: VideoAccessUnit
  /** Number of places at which a frame header of audio was looked for. */
  readonly triedHeaders?: number
}

/** @param payload  elementary stream bytes of the PES packet, read only as far as needed */
export function inspectUnit(codec: Codec, payload: Buffer): Inspection {
  if (codec === 'h264') return inspectH264(payload)
  if (codec === 'h265') return inspectH265(payload)
  const decode = AUDIO_DECODERS[codec]
  return decode === undefined ? { codec } : inspectAudio(codec, decode, payload)
}

function inspectH264(payload: Buffer): Inspection {
  const accessUnit = inspectH264AccessUnit([payload])
  const sps = findSet(accessUnit, 'sps')
  const parameters = preferTransfer(sps && decodeH264Sps(sps), accessUnit)
  return { codec: 'h264', accessUnit, parameters }
}

function inspectH265(payload: Buffer): Inspection {
  const accessUnit = inspectH265AccessUnit([payload])
  const sps = findSet(accessUnit, 'sps')
  const vps = findSet(accessUnit, 'vps')
  const parameters = preferTransfer(sps && decodeH265Sps(sps), accessUnit)
  if (parameters === undefined || parameters.frameRate !== undefined || vps === undefined) {
    return { codec: 'h265', accessUnit, parameters }
  }
  const frameRate = decodeH265VpsFrameRate(vps)
  return { codec: 'h265', accessUnit, parameters: { ...parameters, frameRate } }
}

/** Parameters of the SPS, with the dynamic range of the SEI message, which overrides the SPS. */
function preferTransfer(
  parameters: VideoParameters | undefined,
  { preferredTransfer }: VideoAccessUnit,
): VideoParameters | undefined {
  if (parameters === undefined || preferredTransfer === undefined) return parameters
  return { ...parameters, videoRange: videoRangeOf(preferredTransfer) }
}

function findSet({ parameterSets }: VideoAccessUnit, wanted: ParameterSetKind): Buffer | undefined {
  return parameterSets.find(({ kind }) => kind === wanted)?.nal
}

function inspectAudio(codec: Codec, decode: DecodeAudioFrameHeader, payload: Buffer): Inspection {
  let triedHeaders = 0
  const found = findAudioFrame(payload, (bytes, at) => {
    triedHeaders++
    return decode(bytes, at)
  })
  const { codec: foundCodec = codec, parameters } = found?.header ?? {}
  return { codec: foundCodec, parameters, triedHeaders }
}
