/**
 * Properties of an access unit up to its first slice, common to H.264 and H.265.
 *
 * @module
 */
import type { ParameterSet } from './parameter-sets.ts'

export interface VideoAccessUnit {
  /** Whether a decoder can start here: see `inspectH264AccessUnit` and `inspectH265AccessUnit`. */
  readonly randomAccess: boolean
  /** Whether it is a recovery point of a gradual decoding refresh (intra refresh), which takes several frames. */
  readonly gradualRefresh: boolean
  /** Whether it is an H.265 RADL picture: presented before its key frame, but decodable without earlier GOPs. */
  readonly decodableLeading: boolean
  /** Whether the first slice found is the first of its picture. */
  readonly startsPicture: boolean
  /** Whether an SEI message carries CEA-608 or CEA-708 captions. */
  readonly closedCaptions: boolean
  /** Transfer characteristics in an SEI message, which override those of the parameter sets. */
  readonly preferredTransfer: number | undefined
  /** Number of parsed NAL units, first slice included. */
  readonly nalUnits: number
  /** Number of bytes copied from the parsed NAL units. */
  readonly nalBytes: number
  /** Parameter sets in the order sent. */
  readonly parameterSets: readonly ParameterSet[]
}
