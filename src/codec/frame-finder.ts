/**
 * Beginnings of frames in a video elementary stream (H.264 7.4.1.2.3, H.265 7.4.2.4.4), wherever it is cut into pieces. A
 * frame is an access unit, or two with a field each.
 *
 * @module
 */
import { findStartCode, MAX_HEAD_BYTES, MAX_NAL_UNITS } from './annex-b.ts'
import { isParameterSet, isSlice, NAL_HEADER_BYTES, nalRole, type NalRole } from './nal-unit.ts'
import { readParameterSet, type ParameterSetKind, type VideoCodec } from './parameter-sets.ts'
import type { Picture } from './picture.ts'
import { VIDEO_READERS, type VideoReaders } from './video-readers.ts'

export interface PictureStart extends Picture {
  /** Offset in the elementary stream: of the zero byte before the start code, if there is one (H.264 B.1.2). */
  readonly at: number
  /** Offset of the latest slice of the picture before; -1 without one. */
  readonly latestSliceAt: number
}

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
  readonly #sliceHeadBytes: number
  readonly #stats: FrameFinderStats
  readonly #pictures: InstanceType<VideoReaders['Pictures']>
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
    this.#headerBytes = NAL_HEADER_BYTES[codec]
    this.#stats = stats
    const { Pictures, sliceHeadBytes } = VIDEO_READERS[codec]
    this.#sliceHeadBytes = sliceHeadBytes
    this.#pictures = new Pictures()
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
    return this.#leadAt === undefined && !this.#isHeaderCut ? -1 : this.#latestSliceAt
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

  /**
   * A NAL unit whose header is cut goes on.
   *
   * @returns the picture whose first slice ends with the latest piece, if it was not found before
   */
  endNal(damaged: boolean): PictureStart[] {
    if (this.#isHeaderCut && !damaged) return []
    const starts: PictureStart[] = []
    const at = this.#sizeBytes - this.#rest.length
    if (this.#nalAt !== undefined && this.#nalAt < this.#rest.length) {
      this.#take(this.#rest.subarray(this.#nalAt), { at, damaged, starts })
    }
    this.#rest = this.#rest.subarray(endWithoutZeros(this.#rest))
    this.#nalAt = undefined
    return starts
  }

  get #isHeaderCut(): boolean {
    return this.#nalAt !== undefined && this.#rest.length - this.#nalAt < this.#headerBytes
  }

  #take(
    nal: Buffer,
    { at, damaged, starts }: { at: number; damaged: boolean; starts: PictureStart[] },
  ): void {
    this.#stats.foundNals++
    if (nal.length < this.#headerBytes) return
    const role = this.#roleOf(nal)
    if (role === 'other') return
    if (!isSlice(role)) {
      this.#leadAt ??= at
      if (isParameterSet(role) && !damaged && nal.length < MAX_HEAD_BYTES) {
        this.#learn(role, nal)
      }
      return
    }
    const picture = this.#pictures.pushSlice(nal)
    if (picture !== undefined) {
      // Listed: object spread for each frame costs as much as all else (bench/mpegts).
      const { startsFrame, startsOrder, order, hasSet } = picture
      const latestSliceAt = this.#latestSliceAt
      starts.push({
        startsFrame,
        startsOrder,
        order,
        hasSet,
        at: this.#leadAt ?? at,
        latestSliceAt,
      })
    }
    this.#leadAt = undefined
    this.#latestSliceAt = at
  }

  #learn(kind: ParameterSetKind, nal: Buffer): void {
    if (this.#latestSets.get(kind)?.equals(nal) === true) return
    this.#latestSets.set(kind, Buffer.from(nal))
    this.#stats.nalUnits++
    this.#stats.nalBytes += nal.length
    this.#pictures.pushSet(readParameterSet(this.#codec, kind, nal))
  }

  #bytesWanted(bytes: Buffer, at: number): number {
    if (bytes.length - at < this.#headerBytes) return this.#headerBytes
    const role = this.#roleOf(bytes.subarray(at, at + this.#headerBytes))
    if (isParameterSet(role)) return MAX_HEAD_BYTES
    return isSlice(role) ? this.#sliceHeadBytes : this.#headerBytes
  }

  #roleOf(nal: Buffer): NalRole {
    return nalRole(this.#codec, nal[0]!, nal[1])
  }
}

/** @returns end of the bytes without as many zero bytes at their end as a start code may have */
function endWithoutZeros(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0 && bytes.length - end < MAX_CODE_ZEROS && bytes[end - 1] === 0) end--
  return end
}
