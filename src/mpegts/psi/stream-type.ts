/**
 * Values of `stream_type` in a program map (ISO/IEC 13818-1 Table 2-34; ATSC A/53 Part 3; ANSI/SCTE 35 8.1;
 * SMPTE RP 227).
 *
 * @module
 */

export const StreamType = {
  MPEG1_VIDEO: 0x01,
  MPEG2_VIDEO: 0x02,
  MPEG1_AUDIO: 0x03,
  MPEG2_AUDIO: 0x04,
  PRIVATE_SECTIONS: 0x05,
  PRIVATE_PES: 0x06,
  DSM_CC_A: 0x0a,
  DSM_CC_B: 0x0b,
  DSM_CC_C: 0x0c,
  DSM_CC_D: 0x0d,
  AAC_ADTS: 0x0f,
  MPEG4_VIDEO: 0x10,
  AAC_LATM: 0x11,
  SYNCHRONIZED_DOWNLOAD: 0x14,
  METADATA_PES: 0x15,
  METADATA_SECTIONS: 0x16,
  H264: 0x1b,
  JPEG_2000: 0x21,
  H265: 0x24,
  JPEG_XS: 0x32,
  H266: 0x33,
  AC3: 0x81,
  SCTE_35: 0x86,
  EAC3: 0x87,
  VC1: 0xea,
} as const

const SECTION_TYPES: ReadonlySet<number> = new Set([
  StreamType.PRIVATE_SECTIONS,
  StreamType.DSM_CC_A,
  StreamType.DSM_CC_B,
  StreamType.DSM_CC_C,
  StreamType.DSM_CC_D,
  StreamType.SYNCHRONIZED_DOWNLOAD,
  StreamType.METADATA_SECTIONS,
  StreamType.SCTE_35,
])

/** @returns true for a stream type carried in PES packets, false for one carried in sections */
export function isCarriedInPes(streamType: number): boolean {
  return !SECTION_TYPES.has(streamType)
}
