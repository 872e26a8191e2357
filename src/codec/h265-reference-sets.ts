/**
 * Short-term reference picture sets of an H.265 sequence parameter set (ITU-T H.265 7.3.7). Nothing in them is of use
 * here, but the frame rate stands behind them and their length is known only by reading them.
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'

/** 7.4.3.2.1: at most 64 sets in a sequence parameter set. */
const MAX_SETS = 64

/** 7.4.8: a set holds no more pictures than the decoded picture buffer, 16 at most. */
const MAX_PICTURES = 16

/** @returns false where a count is beyond what the standard allows */
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
 * A set told by its difference from the one before.
 *
 * @param pictures  how many pictures that one holds
 * @returns how many this one holds
 */
function skipPredictedSet(reader: BitReader, pictures: number): number | undefined {
  reader.skipBits(1) // delta_rps_sign
  reader.readUe() // abs_delta_rps_minus1
  let kept = 0
  for (let picture = 0; picture <= pictures; picture++) {
    const used = reader.readFlag() // used_by_curr_pic_flag
    if (used || reader.readFlag()) kept++ // use_delta_flag
  }
  return kept > MAX_PICTURES ? undefined : kept
}

function skipExplicitSet(reader: BitReader): number | undefined {
  const pictures = reader.readUe() + reader.readUe() // before and after in output order
  if (pictures > MAX_PICTURES) return undefined
  for (let picture = 0; picture < pictures; picture++) {
    reader.readUe() // delta_poc_minus1
    reader.skipBits(1) // used_by_curr_pic_flag
  }
  return pictures
}
