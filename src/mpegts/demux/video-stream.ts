/**
 * State of a video stream between access units: its parameter sets.
 *
 * @module
 */
import {
  ParameterSets,
  type ParameterSet,
  type ParameterSetChange,
  type VideoCodec,
} from '../../codec/parameter-sets.ts'
import type { VideoAccessUnit } from '../../codec/video-access-unit.ts'
import { completeAccessUnit } from './complete-access-unit.ts'
import type { PesUnit } from '../pes-unit.ts'
import type { VideoPes } from './frame-splitter.ts'

/** Fields of a `PesUnit` other than track, times and place. */
export type UnitContent = Omit<PesUnit, 'track' | 'ptsTicks' | 'dtsTicks' | 'packetNumber'>

const NOTHING: readonly ParameterSet[] = []

/** Inputs: `push` every PES packet in order. */
export class VideoStream {
  readonly #codec: VideoCodec
  readonly #sets: ParameterSets
  /** All of them, in the order of their kinds; undefined while one of some kind is unknown. */
  #allSets: readonly ParameterSet[] | undefined
  /** Whether parameter sets have changed since the latest random access point; undefined before the first. */
  #hasNewSets: boolean | undefined
  /** Whether a PPS has been redefined, which encoders that do it once do again. */
  #inBandSets = false

  constructor(codec: VideoCodec) {
    this.#codec = codec
    this.#sets = new ParameterSets(codec)
  }

  /**
   * @param accessUnit  classification of the PES packet's content
   * @param startsFrame  false for a second field
   * @returns the PES packet, with an access unit delimiter at the start of a picture, and with all parameter sets in an
   *   undamaged key frame; while a parameter set is unknown, a key frame is not a random access point
   */
  push(pes: VideoPes, accessUnit: VideoAccessUnit, startsFrame: boolean): UnitContent {
    const { damaged } = pes
    // Parameter sets of a damaged PES packet may be corrupt: none are remembered, none are inserted.
    const sets = damaged ? NOTHING : accessUnit.parameterSets
    this.#noteChange(this.#sets.push(sets))
    const isKey = accessUnit.randomAccess && startsFrame
    const missing = isKey && !damaged ? this.#sets.missingFrom(sets) : NOTHING
    const { chunks, sizeBytes, payload } = accessUnit.startsPicture
      ? completeAccessUnit(this.#codec, pes, missing ?? NOTHING)
      : pes
    const randomAccess = isKey && missing !== undefined
    const newParameters = randomAccess && this.#hasNewSets === true
    if (randomAccess) this.#hasNewSets = false
    return {
      chunks,
      sizeBytes,
      payload,
      randomAccess,
      newParameters,
      inBandSets: this.#inBandSets,
      gradualRefresh: accessUnit.gradualRefresh && startsFrame,
      decodableLeading: accessUnit.decodableLeading,
      startsFrame: accessUnit.startsPicture && startsFrame,
      damaged,
      parameterSets: this.#allSets,
    }
  }

  #noteChange(change: ParameterSetChange | undefined): void {
    if (change === undefined) return
    this.#allSets = this.#sets.missingFrom(NOTHING)
    const isInBand = this.#inBandSets && change !== 'sequence'
    if (!isInBand && this.#hasNewSets !== undefined) this.#hasNewSets = true
    if (change === 'redefined') this.#inBandSets = true
  }
}
