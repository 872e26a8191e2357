/**
 * What a video stream said in earlier units and later ones rely on: its parameter sets, and the field that waits for
 * another.
 *
 * @module
 */
import { H264FieldPairs } from '../../codec/h264-field.ts'
import { ParameterSets, type ParameterSet } from '../../codec/parameter-sets.ts'
import type { VideoAccessUnit } from '../../codec/video-access-unit.ts'
import { completePicture, PARAMETER_SET_KINDS, type VideoCodec } from './complete-unit.ts'
import type { PesUnit } from '../pes-unit.ts'
import type { RawPes } from './pes-assembler.ts'

/** What a unit is, whatever its track and time. */
export type UnitContent = Omit<PesUnit, 'track' | 'ptsTicks' | 'dtsTicks'>

const NOTHING: readonly ParameterSet[] = []

/** `take` every unit in order. */
export class VideoStream {
  readonly #codec: VideoCodec
  readonly #sets: ParameterSets
  readonly #fields: H264FieldPairs | undefined

  constructor(codec: VideoCodec) {
    this.#codec = codec
    this.#sets = new ParameterSets(PARAMETER_SET_KINDS[codec])
    this.#fields = codec === 'h264' ? new H264FieldPairs() : undefined
  }

  /**
   * @param headerBytes  of the PES header
   * @param picture  what the unit was found to hold
   * @returns the unit with its delimiter; a key frame with all that a decoder needs, and none where that was never seen
   */
  take(pes: RawPes, headerBytes: number, picture: VideoAccessUnit): UnitContent {
    // What a damaged unit says may be damage: it teaches nothing, and no sets are put into it.
    const sets = pes.damaged ? NOTHING : picture.parameterSets
    this.#sets.learn(sets)
    const isSecondField =
      picture.slice !== undefined && this.#fields?.isSecondField(picture.slice, sets) === true
    const isKey = picture.randomAccess && !isSecondField
    const missing = isKey && !pes.damaged ? this.#sets.missingFrom(sets) : NOTHING
    const chunks = picture.startsPicture
      ? completePicture(this.#codec, pes.chunks, headerBytes, missing ?? NOTHING)
      : pes.chunks
    return {
      chunks,
      sizeBytes: chunks === pes.chunks ? pes.sizeBytes : countBytes(chunks),
      randomAccess: isKey && missing !== undefined,
      gradualRefresh: picture.gradualRefresh && !isSecondField,
      decodableLeading: picture.decodableLeading,
      startsFrame: picture.startsPicture && !isSecondField,
      damaged: pes.damaged,
    }
  }
}

function countBytes(chunks: readonly Buffer[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0)
}
