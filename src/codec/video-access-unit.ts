/**
 * What stands before the first slice of an access unit, in the terms that H.264 and H.265 share.
 *
 * @module
 */
import type { ParameterSet } from './parameter-sets.ts'

export interface VideoAccessUnit {
  /** A decoder can start here: see the codec. */
  readonly randomAccess: boolean
  /** Pictures become whole by and by from here on (intra refresh): recovery takes frames. */
  readonly gradualRefresh: boolean
  /** H.265 RADL picture: shown before the key frame that it follows, but decodable from it. */
  readonly decodableLeading: boolean
  /** A first slice was found, and it begins a picture. */
  readonly startsPicture: boolean
  /** CEA-608 or CEA-708 captions come along. */
  readonly closedCaptions: boolean
  /** NAL units that were read, the first slice included. */
  readonly nalUnits: number
  /** Bytes of them that were gathered. */
  readonly nalBytes: number
  /** In the order sent. */
  readonly parameterSets: readonly ParameterSet[]
  /** Head of the first slice with its NAL header. */
  readonly slice: Buffer | undefined
}
