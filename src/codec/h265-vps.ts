/**
 * Frame rate in an H.265 video parameter set (ITU-T H.265 7.3.2.1); some encoders send it nowhere else.
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { readH265CodecString } from './h265-profile.ts'
import { skipSubLayerOrdering } from './h265-sps.ts'
import { readFrameRate } from './vui.ts'

/** Maximum of `vps_num_layer_sets_minus1` (7.4.3.1). */
const MAX_LAYER_SETS_MINUS1 = 1023

/**
 * @param nal  the NAL unit with its header, emulation prevention bytes still in it
 * @returns frames per second; undefined when the set has no timing or does not parse
 */
export function decodeH265VpsFrameRate(nal: Buffer): number | undefined {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  reader.skipBits(12) // vps_video_parameter_set_id, base layer flags, vps_max_layers_minus1
  const maxSubLayersMinus1 = reader.readBits(3)
  reader.skipBits(17) // vps_temporal_id_nesting_flag, vps_reserved_0xffff_16bits
  readH265CodecString(reader, maxSubLayersMinus1)
  skipSubLayerOrdering(reader, maxSubLayersMinus1)
  const maxLayerId = reader.readBits(6)
  const layerSetsMinus1 = reader.readUe()
  if (layerSetsMinus1 > MAX_LAYER_SETS_MINUS1) return undefined
  reader.skipBits(layerSetsMinus1 * (maxLayerId + 1)) // layer_id_included_flag
  return readFrameRate(reader, 1)
}
