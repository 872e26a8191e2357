/**
 * State of a video stream between access units: its parameter sets, and a first field that awaits its second.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import { H264FieldPairs } from '../../codec/h264-field.ts'
import { ParameterSets, type ParameterSet, type VideoCodec } from '../../codec/parameter-sets.ts'
import type { VideoAccessUnit } from '../../codec/video-access-unit.ts'
import { completeAccessUnit } from './complete-access-unit.ts'
import type { PesUnit } from '../pes-unit.ts'
import type { RawPes } from './pes-assembler.ts'

/** Fields of a `PesUnit` other than track and times. */
export type UnitContent = Omit<PesUnit, 'track' | 'ptsTicks' | 'dtsTicks'>

const NOTHING: readonly ParameterSet[] = []

/** Inputs: `push` every PES packet in order. */
export class VideoStream {
  readonly #codec: VideoCodec
  readonly #sets: ParameterSets
  readonly #fields: H264FieldPairs | undefined
  /** Whether parameter sets have changed since the latest random access point; undefined before the first. */
  #hasNewSets: boolean | undefined

  constructor(codec: VideoCodec) {
    this.#codec = codec
    this.#sets = new ParameterSets(codec)
    this.#fields = codec === 'h264' ? new H264FieldPairs() : undefined
  }

  /**
   * @param headerBytes  size of the PES header
   * @param accessUnit  classification of the PES packet's content
   * @returns the PES packet, with an access unit delimiter at the start of a picture, and with all parameter sets in an
   *   undamaged key frame; while a parameter set is unknown, a key frame is not a random access point
   */
  push(pes: RawPes, headerBytes: number, accessUnit: VideoAccessUnit): UnitContent {
    // Parameter sets of a damaged PES packet may be corrupt: none are remembered, none are inserted.
    const sets = pes.damaged ? NOTHING : accessUnit.parameterSets
    if (this.#sets.push(sets) && this.#hasNewSets !== undefined) this.#hasNewSets = true
    const isSecondField =
      accessUnit.slice !== undefined && this.#fields?.push(accessUnit.slice, sets) === true
    const isKey = accessUnit.randomAccess && !isSecondField
    const missing = isKey && !pes.damaged ? this.#sets.missingFrom(sets) : NOTHING
    const chunks = accessUnit.startsPicture
      ? completeAccessUnit(this.#codec, pes.chunks, headerBytes, missing ?? NOTHING)
      : pes.chunks
    const randomAccess = isKey && missing !== undefined
    const newParameters = randomAccess && this.#hasNewSets === true
    if (randomAccess) this.#hasNewSets = false
    return {
      chunks,
      sizeBytes: chunks === pes.chunks ? pes.sizeBytes : totalBytes(chunks),
      randomAccess,
      newParameters,
      gradualRefresh: accessUnit.gradualRefresh && !isSecondField,
      decodableLeading: accessUnit.decodableLeading,
      startsFrame: accessUnit.startsPicture && !isSecondField,
      damaged: pes.damaged,
    }
  }
}
