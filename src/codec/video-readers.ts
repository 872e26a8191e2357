/**
 * Readers of each video codec.
 *
 * @module
 */
import { inspectH264AccessUnit } from './h264.ts'
import { H264_SLICE_HEAD_BYTES, H264Pictures } from './h264-pictures.ts'
import { decodeH264Sequence } from './h264-sps.ts'
import { inspectH265AccessUnit } from './h265.ts'
import { decodeH265Sequence } from './h265-parameter-sets.ts'
import { H265_SLICE_HEAD_BYTES, H265Pictures } from './h265-pictures.ts'
import type { VideoCodec } from './parameter-sets.ts'
import type { VideoAccessUnit } from './video-access-unit.ts'
import type { SequenceParameters } from './video-parameters.ts'

export interface VideoReaders {
  /** Reads an access unit up to its first slice. */
  readonly inspect: (bytes: Buffer) => VideoAccessUnit
  readonly Pictures: new () => H264Pictures | H265Pictures
  /** Number of bytes of a slice that `Pictures` read. */
  readonly sliceHeadBytes: number
  /** Usual step of `Picture.order` from one frame to the next. */
  readonly orderStep: number
  /** Decodes a sequence parameter set. */
  readonly decodeSequence: (nal: Buffer) => SequenceParameters | undefined
}

export const VIDEO_READERS: Readonly<Record<VideoCodec, VideoReaders>> = {
  h264: {
    inspect: inspectH264AccessUnit,
    Pictures: H264Pictures,
    sliceHeadBytes: H264_SLICE_HEAD_BYTES,
    // It counts fields.
    orderStep: 2,
    decodeSequence: decodeH264Sequence,
  },
  h265: {
    inspect: inspectH265AccessUnit,
    Pictures: H265Pictures,
    sliceHeadBytes: H265_SLICE_HEAD_BYTES,
    orderStep: 1,
    decodeSequence: decodeH265Sequence,
  },
}
