/**
 * Format of a video track: its parameter sets, collected from the bitstream, and the sequence parameters in them.
 *
 * @module
 */
import {
  PARAMETER_SET_KINDS,
  ParameterSets,
  type ParameterSet,
  type VideoCodec,
} from '../codec/parameter-sets.ts'
import type { SequenceParameters } from '../codec/video-parameters.ts'
import { VIDEO_READERS } from '../codec/video-readers.ts'

export interface VideoFormat {
  readonly codec: VideoCodec
  /** Whether samples have their parameter sets (`avc3`, `hev1`), which replace those of the sample entry. */
  readonly inBandSets: boolean
  /** In the order in which they refer to each other: VPS, SPS, PPS; each kind by id. */
  readonly parameterSets: readonly ParameterSet[]
  /** Parameters of the first sequence parameter set. */
  readonly sequence: SequenceParameters
}

/**
 * Collector of parameter sets: `push` those of every access unit in decoding order, `apply` at sync samples. A set
 * with the same content is no change (14496-15 5.4.1, 8.4.1); nor is another PPS, if sets are in band.
 */
export class VideoFormatCollector {
  readonly #codec: VideoCodec
  #sets: ParameterSets
  #format: VideoFormat | undefined
  #hasOtherPps = false

  /** @param earlier  sets to begin with */
  constructor(codec: VideoCodec, earlier: readonly ParameterSet[]) {
    this.#codec = codec
    this.#sets = new ParameterSets(codec)
    this.#sets.push(earlier)
  }

  /** Format of the samples since the latest `apply`; undefined while a set is missing or does not parse. */
  get format(): VideoFormat | undefined {
    return this.#format
  }

  /** Whether samples have their parameter sets: always, or from a PPS that the sample entry lacks to the next `apply`. */
  get areInBand(): boolean {
    return this.#format?.inBandSets === true || this.#hasOtherPps
  }

  /** Latest sets, in the order in which they refer to each other; undefined while one is missing. */
  get parameterSets(): readonly ParameterSet[] | undefined {
    const kinds = PARAMETER_SET_KINDS[this.#codec]
    return this.#sets
      .missingFrom([])
      ?.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || a.id - b.id)
  }

  push(sets: readonly ParameterSet[]): void {
    if (sets.length === 0) return
    // A new sequence parameter set starts a coded video sequence, in which no earlier set but the VPS is used.
    const known = this.#sets.missingFrom([])
    if (known && sets.some((set) => set.kind === 'sps' && !this.#sets.has(set))) {
      this.#sets = new ParameterSets(this.#codec)
      this.#sets.push(known.filter(({ kind }) => kind === 'vps'))
    }
    const change = this.#sets.push(sets)
    if (change === 'added' || change === 'redefined') this.#hasOtherPps = true
  }

  /** Makes the collected sets the format of the next samples, which have them in band or not. */
  apply(inBandSets: boolean): void {
    this.#hasOtherPps = false
    const sets = this.parameterSets
    const before = this.#format
    if (sets && before?.inBandSets === inBandSets && isServedBy(before, sets)) return
    const sps = sets?.find(({ kind }) => kind === 'sps')
    const sequence = sps && VIDEO_READERS[this.#codec].decodeSequence(sps.nal)
    this.#format = sets &&
      sequence && { codec: this.#codec, inBandSets, parameterSets: sets, sequence }
  }
}

function isServedBy(
  { inBandSets, parameterSets }: VideoFormat,
  sets: readonly ParameterSet[],
): boolean {
  const isListed = ({ kind }: ParameterSet) => !inBandSets || kind !== 'pps'
  const [a, b] = [parameterSets.filter(isListed), sets.filter(isListed)]
  return a.length === b.length && a.every(({ nal }, index) => nal.equals(b[index]!.nal))
}
