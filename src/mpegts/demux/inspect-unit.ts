/**
 * Inspects the bitstream of a PES packet: codec parameters, and for video the kind of its access unit.
 *
 * @module
 */
import { AUDIO_DECODERS } from '../../codec/audio-decoders.ts'
import { findAudioFrame, type DecodeAudioFrameHeader } from '../../codec/audio-frame.ts'
import { decodeH265VpsFrameRate } from '../../codec/h265-parameter-sets.ts'
import type { ParameterSetKind, VideoCodec } from '../../codec/parameter-sets.ts'
import type { VideoAccessUnit } from '../../codec/video-access-unit.ts'
import { videoRangeOf } from '../../codec/video-parameters.ts'
import { VIDEO_READERS } from '../../codec/video-readers.ts'
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
  if (codec === 'h264' || codec === 'h265') return inspectVideo(codec, payload)
  const decode = AUDIO_DECODERS[codec]
  return decode === undefined ? { codec } : inspectAudio(codec, decode, payload)
}

function inspectVideo(codec: VideoCodec, payload: Buffer): Inspection {
  const { inspect, decodeSequence } = VIDEO_READERS[codec]
  const accessUnit = inspect(payload)
  const find = (wanted: ParameterSetKind) =>
    accessUnit.parameterSets.find(({ kind }) => kind === wanted)?.nal
  const [sps, vps] = [find('sps'), find('vps')]
  const video = sps && decodeSequence(sps)?.video
  if (video === undefined) return { codec, accessUnit }
  // H.265 may have it in the VPS alone.
  const frameRate = video.frameRate ?? (vps && decodeH265VpsFrameRate(vps))
  const { preferredTransfer: transfer } = accessUnit
  const parameters = {
    ...video,
    ...(frameRate !== undefined && { frameRate }),
    // The SEI message overrides the SPS.
    ...(transfer !== undefined && { videoRange: videoRangeOf(transfer) }),
  }
  return { codec, accessUnit, parameters }
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
