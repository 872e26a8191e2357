import { BitWriter, nalUnit } from '../../codec/nal-builder.ts'

/** Creates an SEI message with one construct of ATSC captions (CTA-708 4.4). */
export function captions({ process = 1, valid = 1, identifier = 'GA94' } = {}): Buffer {
  const bits = new BitWriter().u(8, 4).u(8, 14).u(8, 0xb5).u(16, 0x31)
  for (const letter of identifier) bits.u(8, letter.charCodeAt(0))
  bits.u(8, 3).u(1, 1).u(1, process).u(1, 0).u(5, 1).u(8, 0xff)
  return nalUnit([0x06], bits.u(5, 31).u(1, valid).u(2, 0).u(8, 0x94).u(8, 0x2c).u(8, 0xff))
}
