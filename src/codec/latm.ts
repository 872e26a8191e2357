/**
 * AAC in LATM, in the LOAS frames of a transport stream (ISO/IEC 14496-3 1.7.2, 1.7.3).
 *
 *   | syncword 2B7 11 | audioMuxLengthBytes 13 | AudioMuxElement … |
 *
 * An AudioMuxElement has useSameStreamMux and, when that is 0, a StreamMuxConfig; then length and payload of each
 * frame; then other data and byte alignment.
 *
 * @module
 */
import { BitReader } from '../binary/bit-reader.ts'
import { encodeAdtsHeader } from './adts.ts'
import { MAX_FRAMES } from './audio-frame.ts'
import { readAudioSpecificConfig, type AudioSpecificConfig } from './audio-specific-config.ts'

const LOAS_HEADER_BYTES = 3
const LOAS_SYNC_WORD = 0x2b7

/** `frameLengthType` of payloads with PayloadLengthInfo. */
const VARIABLE_LENGTH = 0

/** StreamMuxConfig (1.7.3.2.3) with one program and one layer. */
interface MuxConfig {
  readonly audio: AudioSpecificConfig
  readonly framesPerElement: number
}

/**
 * Result of a conversion.
 *
 * - `adts`: the frames in ADTS.
 * - `unconfigured`: no StreamMuxConfig has arrived yet.
 * - `unsupported`: the StreamMuxConfig cannot be converted, see `readMuxConfig`.
 * - `damaged`: the bytes do not parse.
 */
type LatmReading =
  | { readonly type: 'adts'; readonly bytes: Buffer; readonly audio: AudioSpecificConfig }
  | { readonly type: 'unconfigured' | 'unsupported' | 'damaged' }

/** Converts LATM to ADTS: `push` the elementary stream bytes of every PES packet in order. */
export class LatmReader {
  #config: MuxConfig | undefined
  #frames = 0

  /** Number of frames read so far. */
  get frames(): number {
    return this.#frames
  }

  /** @param bytes  whole LOAS frames; with more than `MAX_FRAMES`, they count as damaged */
  push(bytes: Buffer): LatmReading {
    const frames: Buffer[] = []
    const maxFrames = this.#frames + MAX_FRAMES
    for (let at = 0; at < bytes.length;) {
      if (at + LOAS_HEADER_BYTES > bytes.length) return { type: 'damaged' }
      const header = bytes.readUIntBE(at, LOAS_HEADER_BYTES)
      const begin = at + LOAS_HEADER_BYTES
      at = begin + (header & 0x1fff)
      if (header >> 13 !== LOAS_SYNC_WORD || at > bytes.length) return { type: 'damaged' }
      if (this.#frames > maxFrames) return { type: 'damaged' }
      const failure = this.#readElement(bytes.subarray(begin, at), frames)
      if (failure !== undefined) return { type: failure }
    }
    if (this.#config === undefined) return { type: 'unconfigured' }
    return { type: 'adts', bytes: Buffer.concat(frames), audio: this.#config.audio }
  }

  /** AudioMuxElement (1.7.3.2.2) with `muxConfigPresent`. */
  #readElement(bytes: Buffer, frames: Buffer[]): 'unsupported' | 'damaged' | undefined {
    const reader = new BitReader(bytes)
    const sameConfig = reader.readFlag()
    if (!sameConfig) {
      const config = readMuxConfig(reader)
      if (reader.overrun) return 'damaged'
      if (config === undefined) return 'unsupported'
      this.#config = config
    }
    if (this.#config === undefined) return undefined
    const { audio, framesPerElement } = this.#config
    for (let frame = 0; frame < framesPerElement; frame++) {
      this.#frames++
      const payload = reader.readBytes(readPayloadLength(reader))
      if (reader.overrun) return 'damaged'
      // The lengths of element and ADTS frame both have 13 bits. In an element of 8191 bytes the payload length takes
      // 32 bytes, more than an ADTS header, so the longest payload fits.
      if (payload.length > 0) frames.push(encodeAdtsHeader(audio, payload.length), payload)
    }
    return undefined
  }
}

/** @returns undefined unless it has one program, one layer, frames of variable length, and AAC that ADTS can express */
function readMuxConfig(reader: BitReader): MuxConfig | undefined {
  const version = reader.readBits(1)
  if (version === 1 && reader.readFlag()) return undefined // audioMuxVersionA
  if (version === 1) readValue(reader) // taraBufferFullness
  const sameFraming = reader.readFlag()
  const framesPerElement = reader.readBits(6) + 1
  const programs = reader.readBits(4) + 1
  const layers = reader.readBits(3) + 1
  if (!sameFraming || programs > 1 || layers > 1) return undefined

  const configBits = version === 1 ? readValue(reader) : undefined
  const configBegin = reader.position
  const audio = readAudioSpecificConfig(reader)
  if (audio === undefined) return undefined
  // A configuration with a length field may have extensions after the parsed part.
  if (configBits !== undefined) {
    const unreadBits = configBegin + configBits - reader.position
    if (unreadBits < 0) return undefined
    reader.skipBits(unreadBits)
  }

  if (reader.readBits(3) !== VARIABLE_LENGTH) return undefined
  reader.skipBits(8) // latmBufferFullness
  if (reader.readFlag()) skipOtherDataLength(reader, version)
  if (reader.readFlag()) reader.skipBits(8) // crcCheckSum
  return { audio, framesPerElement }
}

/** Skips the length of other data, which follows the payloads and is never read. */
function skipOtherDataLength(reader: BitReader, version: number): void {
  if (version === 1) readValue(reader)
  else while (reader.readFlag()) reader.skipBits(8)
  if (version === 0) reader.skipBits(8)
}

/** LatmGetValue (1.7.3.1): one to four bytes. */
function readValue(reader: BitReader): number {
  const count = reader.readBits(2) + 1
  return reader.readBits(count * 8)
}

/** PayloadLengthInfo (1.7.3.1): the sum of a run of FF bytes and the byte after it. */
function readPayloadLength(reader: BitReader): number {
  let length = 0
  for (;;) {
    const part = reader.readBits(8)
    length += part
    if (part !== 0xff) return length
  }
}
