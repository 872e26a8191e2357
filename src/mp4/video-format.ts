/**
 * Format of a video track: its parameter sets, collected from the bitstream, and the sequence parameters in them.
 *
 * @module
 */
import { decodeH264Sequence } from '../codec/h264-sps.ts'
import { decodeH265Sequence } from '../codec/h265-parameter-sets.ts'
import {
  PARAMETER_SET_KINDS,
  ParameterSets,
  type ParameterSet,
  type VideoCodec,
} from '../codec/parameter-sets.ts'
import type { SequenceParameters } from '../codec/video-parameters.ts'

export interface VideoFormat {
  readonly codec: VideoCodec
  /** In the order in which they refer to each other: VPS, SPS, PPS; each kind by id. */
  readonly parameterSets: readonly ParameterSet[]
  /** Parameters of the first sequence parameter set. */
  readonly sequence: SequenceParameters
}

/**
 * Collector of parameter sets: `push` those of every access unit in decoding order, `apply` at sync samples. A set
 * with the same content is no change (14496-15 5.4.1, 8.4.1).
 */
export class VideoFormatCollector {
  readonly #codec: VideoCodec
  #sets: ParameterSets
  #format: VideoFormat | undefined

  constructor(codec: VideoCodec) {
    this.#codec = codec
    this.#sets = new ParameterSets(codec)
  }

  /** Format of the samples since the latest `apply`; undefined while a set is missing or does not parse. */
  get format(): VideoFormat | undefined {
    return this.#format
  }

  push(sets: readonly ParameterSet[]): void {
    if (sets.length === 0) return
    // A new sequence parameter set starts a coded video sequence, in which no earlier set but the VPS is used.
    const known = this.#sets.missingFrom([])
    if (known && sets.some((set) => set.kind === 'sps' && !this.#sets.has(set))) {
      this.#sets = new ParameterSets(this.#codec)
      this.#sets.push(known.filter(({ kind }) => kind === 'vps'))
    }
    this.#sets.push(sets)
  }

  /** Makes the collected sets the format of the next samples. */
  apply(): void {
    const kinds = PARAMETER_SET_KINDS[this.#codec]
    const sets = this.#sets
      .missingFrom([])
      ?.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || a.id - b.id)
    if (sets !== undefined && areSame(sets, this.#format?.parameterSets)) return
    const decode = this.#codec === 'h264' ? decodeH264Sequence : decodeH265Sequence
    const sps = sets?.find(({ kind }) => kind === 'sps')
    const sequence = sps && decode(sps.nal)
    this.#format = sets && sequence && { codec: this.#codec, parameterSets: sets, sequence }
  }
}

function areSame(a: readonly ParameterSet[], b: readonly ParameterSet[] | undefined): boolean {
  return a.length === b?.length && a.every(({ nal }, index) => nal.equals(b[index]!.nal))
}
