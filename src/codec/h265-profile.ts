/**
 * CODECS value of H.265, from profile, tier and level (ITU-T H.265 7.3.3; ISO/IEC 14496-15 E.3).
 *
 * @module
 */
import type { BitReader } from '../binary/bit-reader.ts'

const SPACE_LETTERS = ['', 'A', 'B', 'C'] as const

/**
 * Reads a profile_tier_level structure.
 *
 *   | space 2 | tier 1 | profile 5 | compatibility 32 | constraints 48 | level 8 | sub-layers … |
 *
 * @param maxSubLayersMinus1  0-6
 * @returns for example `hvc1.1.6.L93.90`
 */
export function readH265CodecString(reader: BitReader, maxSubLayersMinus1: number): string {
  const space = SPACE_LETTERS[reader.readBits(2)]!
  const tier = reader.readFlag() ? 'H' : 'L'
  const profile = reader.readBits(5)
  const compatibility = reverseBits32(reader.readBits(32))
  const constraints = Array.from({ length: 6 }, () => reader.readBits(8))
  const level = reader.readBits(8)
  skipSubLayers(reader, maxSubLayersMinus1)

  while (constraints.at(-1) === 0) constraints.pop()
  return ['hvc1', `${space}${profile}`, hex(compatibility), `${tier}${level}`]
    .concat(constraints.map(hex))
    .join('.')
}

function skipSubLayers(reader: BitReader, maxSubLayersMinus1: number): void {
  if (maxSubLayersMinus1 === 0) return
  let bits = 0
  for (let layer = 0; layer < 8; layer++) {
    const hasProfile = reader.readFlag()
    const hasLevel = reader.readFlag()
    if (layer >= maxSubLayersMinus1) continue // reserved_zero_2bits
    bits += (hasProfile ? 88 : 0) + (hasLevel ? 8 : 0)
  }
  reader.skipBits(bits)
}

function reverseBits32(value: number): number {
  let reversed = 0
  for (let bit = 0; bit < 32; bit++) reversed = (reversed << 1) | ((value >>> bit) & 1)
  return reversed >>> 0
}

function hex(value: number): string {
  return value.toString(16).toUpperCase()
}
