/**
 * Beginnings of frames in a video elementary stream (H.264 7.4.1.2.3, H.265 7.4.2.4.4), wherever it is cut into pieces. A
 * frame is an access unit, or two with a field each.
 *
 * @module
 */
import { findStartCode, MAX_HEAD_BYTES, MAX_NAL_UNITS } from './annex-b.ts'
import { readH264ParameterSet } from './h264.ts'
import { H264_SLICE_HEAD_BYTES, H264Pictures } from './h264-pictures.ts'
import { readH265ParameterSet } from './h265.ts'
import { H265_SLICE_HEAD_BYTES, H265Pictures } from './h265-pictures.ts'
import type { ParameterSetKind, VideoCodec } from './parameter-sets.ts'
import type { Picture } from './picture.ts'

export interface PictureStart extends Picture {
  /** Offset in the elementary stream: of the zero byte before the start code, if there is one (H.264 B.1.2). */
  readonly at: number
  /** Offset of the latest slice of the picture before; -1 without one. */
  readonly latestSliceAt: number
}

/** What a NAL unit is between frames: `leading` begins an access unit if it is the first one behind a slice. */
type NalRole = 'slice' | ParameterSetKind | 'leading' | 'other'

/** Size of the header of a NAL unit. */
const HEADER_BYTES: Readonly<Record<VideoCodec, number>> = { h264: 1, h265: 2 }

/** Zero bytes at the end of a piece with which a start code may begin. */
const MAX_CODE_ZEROS = 3

const NOTHING = Buffer.alloc(0)

/** Counters of the work done; none ever decreases. */
export interface FrameFinderStats {
  foundNals: number
  nalUnits: number
  nalBytes: number
}

/** Inputs: `push` the pieces of the elementary stream in order; `endNal` after one that ends with a NAL unit. */
export class FrameFinder {
  readonly #codec: VideoCodec
  readonly #headerBytes: number
  readonly #stats: FrameFinderStats
  readonly #pictures: H264Pictures | H265Pictures
  /** Latest parameter set of each kind: most are repeated. */
  readonly #latestSets = new Map<ParameterSetKind, Buffer>()
  /** Size of all pieces. */
  #sizeBytes = 0
  /** Bytes of the latest pieces that are read again with the next one: an unfinished start code or NAL unit. */
  #rest = NOTHING
  /** Offset in `#rest` of the NAL unit that it begins; undefined if it is zero bytes. */
  #nalAt: number | undefined
  /** Offset of the first NAL unit behind the latest slice that may begin an access unit. */
  #leadAt: number | undefined
  #latestSliceAt = -1

  /** @param stats  to count in */
  constructor(codec: VideoCodec, stats: FrameFinderStats) {
    this.#codec = codec
    this.#headerBytes = HEADER_BYTES[codec]
    this.#stats = stats
    this.#pictures = codec === 'h264' ? new H264Pictures() : new H265Pictures()
  }

  /** Whether a slice was found. */
  get hasSlice(): boolean {
    return this.#latestSliceAt >= 0
  }

  /**
   * Offset of the latest slice, if a frame may begin behind it whose first slice has not come: also where all pieces end in the
   * header of a NAL unit. Else -1.
   */
  get sliceBeforeLead(): number {
    const isHeaderCut =
      this.#nalAt !== undefined && this.#rest.length - this.#nalAt < this.#headerBytes
    return this.#leadAt === undefined && !isHeaderCut ? -1 : this.#latestSliceAt
  }

  /** Lowest offset of a frame that is still to be found. */
  get earliestAt(): number {
    return this.#leadAt ?? this.#sizeBytes - this.#rest.length
  }

  /**
   * @param damaged  whether bytes were lost: no parameter set is taken from it
   * @returns pictures whose first slice is in all pieces so far, each once; a second field is one
   */
  push(piece: Buffer, damaged: boolean): PictureStart[] {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    const restBytes = this.#rest.length
    const offset = this.#sizeBytes - restBytes
    this.#sizeBytes += piece.length
    this.#stats.nalBytes += restBytes
    const starts: PictureStart[] = []
    let begin = 0
    let nalAt = this.#nalAt
    let codeAt = findStartCode(bytes, Math.max(nalAt ?? 0, restBytes - 2))
    for (let count = 0; count < MAX_NAL_UNITS; count++) {
      if (nalAt !== undefined) {
        const end = codeAt === -1 ? bytes.length : codeAt
        if (codeAt === -1 && end - nalAt < this.#bytesWanted(bytes, nalAt)) break
        this.#take(bytes.subarray(nalAt, end), { at: offset + begin, damaged, starts })
        nalAt = undefined
      }
      if (codeAt === -1) break
      // A zero byte at the end of a piece belongs to what precedes, if the next piece begins with a start code.
      const hasZeroByte = codeAt > 0 && codeAt !== restBytes && bytes[codeAt - 1] === 0
      begin = hasZeroByte ? codeAt - 1 : codeAt
      nalAt = codeAt + 3
      codeAt = findStartCode(bytes, nalAt)
    }
    // A piece with more NAL units than an access unit may have is not read to its end.
    if (codeAt !== -1) nalAt = undefined
    const from = nalAt === undefined ? endWithoutZeros(bytes) : begin
    this.#rest = Buffer.from(bytes.subarray(from))
    this.#nalAt = nalAt === undefined ? undefined : nalAt - from
    return starts
  }

  /** @returns the picture whose first slice ends with the latest piece, if it was not found before */
  endNal(damaged: boolean): PictureStart[] {
    const starts: PictureStart[] = []
    const at = this.#sizeBytes - this.#rest.length
    if (this.#nalAt !== undefined && this.#nalAt < this.#rest.length) {
      this.#take(this.#rest.subarray(this.#nalAt), { at, damaged, starts })
    }
    this.#rest = this.#rest.subarray(endWithoutZeros(this.#rest))
    this.#nalAt = undefined
    return starts
  }

  #take(
    nal: Buffer,
    { at, damaged, starts }: { at: number; damaged: boolean; starts: PictureStart[] },
  ): void {
    this.#stats.foundNals++
    if (nal.length < this.#headerBytes) return
    const role = this.#roleOf(nal)
    if (role === 'other') return
    if (role !== 'slice') {
      this.#leadAt ??= at
      if (role !== 'leading' && !damaged && nal.length < MAX_HEAD_BYTES) {
        this.#learn(role, nal)
      }
      return
    }
    const picture = this.#pictures.pushSlice(nal)
    if (picture !== undefined) {
      starts.push({ ...picture, at: this.#leadAt ?? at, latestSliceAt: this.#latestSliceAt })
    }
    this.#leadAt = undefined
    this.#latestSliceAt = at
  }

  #learn(kind: ParameterSetKind, nal: Buffer): void {
    if (this.#latestSets.get(kind)?.equals(nal) === true) return
    this.#latestSets.set(kind, Buffer.from(nal))
    this.#stats.nalUnits++
    this.#stats.nalBytes += nal.length
    this.#pictures.pushSet(
      this.#codec === 'h265'
        ? readH265ParameterSet(kind, nal)
        : readH264ParameterSet(kind === 'sps' ? 'sps' : 'pps', nal),
    )
  }

  #bytesWanted(bytes: Buffer, at: number): number {
    if (bytes.length - at < this.#headerBytes) return this.#headerBytes
    switch (this.#roleOf(bytes.subarray(at, at + this.#headerBytes))) {
      case 'slice':
        return this.#codec === 'h264' ? H264_SLICE_HEAD_BYTES : H265_SLICE_HEAD_BYTES
      case 'leading':
      case 'other':
        return this.#headerBytes
      default:
        return MAX_HEAD_BYTES
    }
  }

  #roleOf(nal: Buffer): NalRole {
    return this.#codec === 'h264' ? h264Role(nal[0]! & 0x1f) : h265Role(nal)
  }
}

/** Role by `nal_unit_type` (H.264 Table 7-1): slices are those of primary pictures, data partition A included. */
function h264Role(type: number): NalRole {
  if (type === 1 || type === 2 || type === 5) return 'slice'
  if (type === 7) return 'sps'
  if (type === 8) return 'pps'
  return type === 6 || type === 9 || (type >= 14 && type <= 18) ? 'leading' : 'other'
}

/** Role by `nal_unit_type` (H.265 Table 7-1); NAL units of other layers belong to the picture of the base layer before. */
function h265Role(nal: Buffer): NalRole {
  const type = (nal[0]! >> 1) & 0x3f
  const isBaseLayer = (nal[0]! & 1) === 0 && (nal[1] ?? 0) >> 3 === 0
  if (!isBaseLayer) return 'other'
  if (type <= 31) return 'slice'
  if (type === 32) return 'vps'
  if (type === 33) return 'sps'
  if (type === 34) return 'pps'
  const isLeading =
    type === 35 || type === 39 || (type >= 41 && type <= 44) || (type >= 48 && type <= 55)
  return isLeading ? 'leading' : 'other'
}

/** @returns end of the bytes without as many zero bytes at their end as a start code may have */
function endWithoutZeros(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0 && bytes.length - end < MAX_CODE_ZEROS && bytes[end - 1] === 0) end--
  return end
}
