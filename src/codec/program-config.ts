/**
 * program_config_element of AAC (ISO/IEC 14496-3 4.4.1.1), which describes the channels where channelConfiguration is 0:
 * ffmpeg writes it for 5.1 with side speakers and for other layouts without a number.
 *
 *   | instance 4 | profile 2 | rate index 4 | front 4 | side 4 | back 4 | LFE 2 | data 3 | coupling 4 |
 *   | mono mixdown 1, 4 | stereo mixdown 1, 4 | matrix mixdown 1, 3 | elements … | alignment | comment length 8, … |
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'

/** `id_syn_ele` of the element at the start of a raw_data_block (4.5.2.1.1). */
const ID_PCE = 5
const ID_BITS = 3

export interface ProgramConfig {
  readonly channels: number
  /** The element without its comment, from a byte boundary on: as it ends an AudioSpecificConfig. */
  readonly bytes: Buffer
}

/** @returns undefined when the raw_data_block does not begin with a program_config_element */
export function readProgramConfig(block: Buffer): ProgramConfig | undefined {
  const reader = new BitReader(block)
  if (reader.readBits(ID_BITS) !== ID_PCE) return undefined
  reader.skipBits(4 + 2 + 4)
  const [front, side, back] = [reader.readBits(4), reader.readBits(4), reader.readBits(4)]
  const [lfe, data, coupling] = [reader.readBits(2), reader.readBits(3), reader.readBits(4)]
  for (const bits of [4, 4, 3]) if (reader.readFlag()) reader.skipBits(bits)
  let channels = lfe
  for (let count = front + side + back; count > 0; count--) {
    channels += reader.readFlag() ? 2 : 1
    reader.skipBits(4)
  }
  reader.skipBits(lfe * 4 + data * 4 + coupling * 5)
  if (reader.overrun || channels === 0) return undefined
  return { channels, bytes: copyBits(block, ID_BITS, reader.position) }
}

/** @returns the bits, filled up with zeros, and a byte for a comment of 0 bytes */
function copyBits(block: Buffer, from: number, to: number): Buffer {
  const reader = new BitReader(block)
  reader.skipBits(from)
  const bytes = Buffer.alloc(Math.ceil((to - from) / 8) + 1)
  for (let at = 0; reader.position < to; at++) {
    const bits = Math.min(8, to - reader.position)
    bytes[at] = reader.readBits(bits) << (8 - bits)
  }
  return bytes
}
