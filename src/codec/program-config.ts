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

/** Length of the comment at the end of the element. */
const NO_COMMENT = Buffer.alloc(1)

/** Elements of the channel configurations from 1 on (Table 1.19), in front and behind: one channel, two, and low frequencies. */
const CONFIGURATIONS = ['1 ', '2 ', '12 ', '12 1', '12 2', '12 2L', '122 2L']

/** Channel configurations by their number of channels (Table 1.19). */
const BY_CHANNELS = [0, 1, 2, 3, 4, 5, 6, 0, 7]

export interface ProgramConfig {
  /** channelConfiguration 1-7 with as many channels; 0 for none. */
  readonly configuration: number
  /** The element without its comment, as a raw_data_block begins with it; undefined where the configuration says it all, or none. */
  readonly element: Buffer | undefined
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
  let elements = ''
  for (let count = front + side + back; count > 0; count--) {
    const isPair = reader.readFlag()
    channels += isPair ? 2 : 1
    elements += isPair ? '2' : '1'
    reader.skipBits(4)
  }
  reader.skipBits(lfe * 4 + data * 4 + coupling * 5)
  if (reader.overrun) return undefined
  const configuration = coupling > 0 ? 0 : (BY_CHANNELS[channels] ?? 0)
  const order = `${elements.slice(0, front)} ${elements.slice(front)}${'L'.repeat(lfe)}`
  if (configuration === 0 || CONFIGURATIONS[configuration - 1] === order)
    return { configuration, element: undefined }
  const end = Math.ceil(reader.position / 8)
  return { configuration, element: Buffer.concat([block.subarray(0, end), NO_COMMENT]) }
}
