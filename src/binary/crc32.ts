/**
 * CRC-32/MPEG-2, the checksum of PSI sections (ISO/IEC 13818-1 Annex A): polynomial 0x04C11DB7, most significant bit
 * first, initial value all ones, neither reflected nor inverted.
 *
 * @module
 */

const POLYNOMIAL = 0x04c11db7

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte << 24
  for (let bit = 0; bit < 8; bit++) {
    remainder = (remainder << 1) ^ (remainder < 0 ? POLYNOMIAL : 0)
  }
  return remainder
})

/** @returns checksum as u32; 0 for a section that includes its valid CRC_32 */
export function crc32Mpeg2(bytes: Uint8Array): number {
  let remainder = 0xffffffff
  for (const byte of bytes) {
    remainder = (remainder << 8) ^ TABLE[(remainder >>> 24) ^ byte]!
  }
  return remainder >>> 0
}
