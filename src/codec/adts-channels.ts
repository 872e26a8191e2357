/**
 * AAC whose channels are in a program_config_element (ISO/IEC 14496-3 4.4.1.1), which some encoders send once. Chromium refuses
 * channel configuration 0: each ADTS header gets the one with as many channels and, where that has other elements or another
 * order, each frame the element, which decoders go by.
 *
 * @module
 */
import { decodeAdtsHeader, ADTS_HEADER_BYTES, MAX_FRAME_BYTES, writeFrameBytes } from './adts.ts'
import { findAudioFrame, MAX_FRAMES, type DecodeAudioFrameHeader } from './audio-frame.ts'
import { readProgramConfig, type ProgramConfig } from './program-config.ts'

const NOTHING = Buffer.alloc(0)

/** Inputs: `push` the elementary stream bytes of every PES packet in order, `restart` behind a loss. */
export class AdtsChannels {
  readonly #stats: { triedHeaders: number }
  /** The latest program_config_element. */
  #program: ProgramConfig = { configuration: 0, element: undefined }
  /** Start of a header whose rest is in the next PES packet. */
  #head = NOTHING
  /** Offset of the next header behind `#head`, or of that in it; undefined until it is searched for. */
  #at: number | undefined

  /** @param stats  to count in */
  constructor(stats: { triedHeaders: number }) {
    this.#stats = stats
  }

  /** Forgets where the next header is. */
  restart(): void {
    this.#head = NOTHING
    this.#at = undefined
  }

  /** @returns the bytes with the channels in their headers, in memory of their own if they differ; a cut header waits for its rest */
  push(payload: Buffer): Buffer {
    const decode: DecodeAudioFrameHeader = (bytes, at) => {
      this.#stats.triedHeaders++
      return decodeAdtsHeader(bytes, at)
    }
    const bytes = this.#head.length === 0 ? payload : Buffer.concat([this.#head, payload])
    const pieces: Buffer[] = []
    let begin = 0
    let at = this.#at
    if (at === undefined || (hasHeader(bytes, at) && decode(bytes, at) === undefined))
      at = findAudioFrame(bytes, decode)?.at
    for (let count = 0; at !== undefined && hasHeader(bytes, at); count++) {
      const header = count < MAX_FRAMES ? decode(bytes, at) : undefined
      const told = header && this.#tell(bytes, at, header.sizeBytes)
      if (told !== undefined) {
        pieces.push(bytes.subarray(begin, at), told)
        begin = at + ADTS_HEADER_BYTES
      }
      at = header && at + header.sizeBytes
    }
    const end = Math.min(at ?? bytes.length, bytes.length)
    this.#head = Buffer.from(bytes.subarray(end))
    this.#at = at && at - end
    if (pieces.length === 0 && bytes === payload && end === bytes.length) return payload
    return Buffer.concat([...pieces, bytes.subarray(begin, end)])
  }

  /** @returns the header with the channels and, if the frame lacks it, the program_config_element; undefined if it stays as it is */
  #tell(bytes: Buffer, at: number, sizeBytes: number): Buffer | undefined {
    if (!lacksChannels(bytes, at)) return undefined
    const own = readProgramConfig(bytes.subarray(at + ADTS_HEADER_BYTES, at + sizeBytes))
    this.#program = own ?? this.#program
    const { configuration, element = NOTHING } = this.#program
    if (configuration === 0) return undefined
    const added =
      own === undefined && sizeBytes + element.length <= MAX_FRAME_BYTES ? element : NOTHING
    const header = Buffer.from(bytes.subarray(at, at + ADTS_HEADER_BYTES))
    header[2]! |= configuration >> 2
    header[3]! |= (configuration & 3) << 6
    writeFrameBytes(header, sizeBytes + added.length)
    return Buffer.concat([header, added])
  }
}

function hasHeader(bytes: Buffer, at: number): boolean {
  return at + ADTS_HEADER_BYTES <= bytes.length
}

/** Whether the header has channel configuration 0 and no CRC, which covers the header. */
function lacksChannels(bytes: Buffer, at: number): boolean {
  return (bytes[at + 1]! & 1) === 1 && (bytes[at + 2]! & 1) === 0 && (bytes[at + 3]! & 0xc0) === 0
}
