/**
 * Writes LOAS frames bit by bit: what no encoder at hand sends.
 *
 * @module
 */
import { BitWriter } from './nal-builder.ts'

export interface MuxFields {
  readonly version?: number
  /** Bits of the AudioSpecificConfig. */
  readonly audio?: string
  readonly subFrames?: number
  readonly programs?: number
  readonly layers?: number
  readonly frameLengthType?: number
  /** Bits of other data behind the payload. */
  readonly otherData?: number
  readonly crc?: boolean
}

/** Object type 2, index 3 (48 kHz), two channels, frames of 1024 samples. */
export const STEREO = '0001000110010000'

/** StreamMuxConfig (1.7.3.2.3). */
function muxConfig(bits: BitWriter, fields: MuxFields): void {
  const { version = 0, audio = STEREO, frameLengthType = 0, otherData = 0, crc = false } = fields
  bits.u(1, version)
  if (version === 1) bits.u(1, 0).u(2, 1).u(16, 0x1ff) // taraBufferFullness in two bytes
  bits.u(1, 1).u(6, (fields.subFrames ?? 1) - 1)
  bits.u(4, (fields.programs ?? 1) - 1).u(3, (fields.layers ?? 1) - 1)
  if (version === 1) bits.u(2, 0).u(8, audio.length)
  bits.bits += audio
  bits.u(3, frameLengthType).u(8, 0xff)
  bits.u(1, otherData > 0 ? 1 : 0)
  if (otherData > 0 && version === 1) bits.u(2, 0).u(8, otherData)
  if (otherData > 0 && version === 0)
    bits
      .u(1, 1)
      .u(8, otherData >> 8)
      .u(1, 0)
      .u(8, otherData & 255)
  bits.u(1, crc ? 1 : 0)
  if (crc) bits.u(8, 0x5a)
}

/** Creates a LOAS frame; without `config` it has useSameStreamMux. */
export function loas(config: MuxFields | undefined, ...payloads: Uint8Array[]): Buffer {
  const bits = new BitWriter().u(1, config === undefined ? 1 : 0)
  if (config !== undefined) muxConfig(bits, config)
  for (const payload of payloads) {
    let left = payload.length
    for (; left >= 255; left -= 255) bits.u(8, 255)
    bits.u(8, left)
    for (const byte of payload) bits.u(8, byte)
  }
  bits.bits += '1'.repeat(config?.otherData ?? 0)
  const { bytes } = bits
  const header = new BitWriter().u(11, 0x2b7).u(13, bytes.length).bytes
  return Buffer.concat([header, bytes])
}

export const frame = (fill: number, length: number) => Buffer.alloc(length, fill)
