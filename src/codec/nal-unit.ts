/**
 * Roles of NAL units by their header (ITU-T H.264 7.3.1, H.265 7.3.1.2).
 *
 *   H.264   | 0 1 | nal_ref_idc 2 | nal_unit_type 5 |
 *   H.265   | 0 1 | nal_unit_type 6 | nuh_layer_id 6 | temporal_id_plus1 3 |
 *
 * @module
 */
import type { ParameterSetKind, VideoCodec } from './parameter-sets.ts'

/**
 * What a NAL unit is: `sync` is a slice of a picture at which decoding can start, `prefix` one that begins an access unit if it
 * is the first behind a slice, as parameter sets, delimiters and SEI do.
 */
export type NalRole = ParameterSetKind | 'sync' | 'slice' | 'delimiter' | 'sei' | 'prefix' | 'other'

/** Size of the header of a NAL unit. */
export const NAL_HEADER_BYTES: Readonly<Record<VideoCodec, number>> = { h264: 1, h265: 2 }

/** Roles by `nal_unit_type` (H.264 Table 7-1): slices are those of primary pictures, data partition A included. */
const H264_ROLES = rolesOf([
  [1, 2, 'slice'],
  [5, 5, 'sync'],
  [6, 6, 'sei'],
  [7, 7, 'sps'],
  [8, 8, 'pps'],
  [9, 9, 'delimiter'],
  [14, 18, 'prefix'],
])

/** Roles by `nal_unit_type` (H.265 Table 7-1): IRAP pictures are BLA, IDR and CRA. */
const H265_ROLES = rolesOf([
  [0, 15, 'slice'],
  [16, 21, 'sync'],
  [22, 31, 'slice'],
  [32, 32, 'vps'],
  [33, 33, 'sps'],
  [34, 34, 'pps'],
  [35, 35, 'delimiter'],
  [39, 39, 'sei'],
  [41, 44, 'prefix'],
  [48, 55, 'prefix'],
])

/**
 * @param header  first byte of the NAL unit
 * @param second  second byte; not read in H.264
 * @returns `other` for NAL units of scalable and multi-view layers of H.265, without which the base layer decodes
 */
export function nalRole(codec: VideoCodec, header: number, second = 0): NalRole {
  if (codec === 'h264') return H264_ROLES[header & 0x1f] ?? 'other'
  const isBaseLayer = (header & 1) === 0 && second >> 3 === 0
  return isBaseLayer ? (H265_ROLES[(header >> 1) & 0x3f] ?? 'other') : 'other'
}

export function isParameterSet(role: NalRole): role is ParameterSetKind {
  return role === 'vps' || role === 'sps' || role === 'pps'
}

export function isSlice(role: NalRole): boolean {
  return role === 'slice' || role === 'sync'
}

/** @param ranges  first and last type, and their role */
function rolesOf(ranges: readonly (readonly [number, number, NalRole])[]): readonly NalRole[] {
  const roles: NalRole[] = []
  for (const [first, last, role] of ranges) {
    for (let type = first; type <= last; type++) roles[type] = role
  }
  return roles
}
