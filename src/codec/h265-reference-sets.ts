/**
 * Short-term reference picture sets of an H.265 sequence parameter set (ITU-T H.265 7.3.7). They have no length field,
 * so they are parsed to find the VUI parameters after them.
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'

/** Maximum of `num_short_term_ref_pic_sets` (7.4.3.2.1). */
const MAX_SETS = 64

/** Maximum number of pictures in a set: the maximum size of the decoded picture buffer (7.4.8). */
const MAX_PICTURES = 16

/** @returns false when a count exceeds its maximum */
export function skipShortTermReferenceSets(reader: BitReader): boolean {
  const sets = reader.readUe()
  if (sets > MAX_SETS) return false
  let pictures = 0
  for (let set = 0; set < sets; set++) {
    const predicted = set > 0 && reader.readFlag()
    const count = predicted ? skipPredictedSet(reader, pictures) : skipExplicitSet(reader)
    if (count === undefined) return false
    pictures = count
  }
  return true
}

/**
 * Skips a set that is coded as the difference from the previous set.
 *
 * @param pictures  number of pictures in the previous set
 * @returns number of pictures in this set; undefined above the maximum
 */
function skipPredictedSet(reader: BitReader, pictures: number): number | undefined {
  reader.skipBits(1) // delta_rps_sign
  reader.readUe() // abs_delta_rps_minus1
  let count = 0
  for (let picture = 0; picture <= pictures; picture++) {
    const used = reader.readFlag() // used_by_curr_pic_flag
    if (used || reader.readFlag()) count++ // use_delta_flag
  }
  return count > MAX_PICTURES ? undefined : count
}

function skipExplicitSet(reader: BitReader): number | undefined {
  const pictures = reader.readUe() + reader.readUe() // num_negative_pics, num_positive_pics
  if (pictures > MAX_PICTURES) return undefined
  for (let picture = 0; picture < pictures; picture++) {
    reader.readUe() // delta_poc_minus1
    reader.skipBits(1) // used_by_curr_pic_flag
  }
  return pictures
}
