/**
 * AAC whose channels are in a program_config_element (ISO/IEC 14496-3 4.4.1.1), which some encoders send once: where a channel
 * configuration has its elements, each ADTS header tells that one. Chromium refuses AAC without.
 *
 * @module
 */
import { decodeAdtsHeader, HEADER_BYTES } from './adts.ts'
import { findAudioFrame, MAX_FRAMES, type DecodeAudioFrameHeader } from './audio-frame.ts'
import { readProgramConfig } from './program-config.ts'

const NOTHING = Buffer.alloc(0)

/** Inputs: `push` the elementary stream bytes of every PES packet in order, `restart` behind a loss. */
export class AdtsChannels {
  readonly #stats: { triedHeaders: number }
  /** Channel configuration of the latest program_config_element; 0 for none. */
  #configuration = 0
  /** Start of a header whose rest is in the next PES packet, as it was sent. */
  #head = NOTHING
  /** Offset of the next header from the start of the next PES packet; undefined until it is searched for. */
  #at: number | undefined

  /** @param stats  to count in */
  constructor(stats: { triedHeaders: number }) {
    this.#stats = stats
  }

  /** Searches for the next header. */
  restart(): void {
    this.#head = NOTHING
    this.#at = undefined
  }

  /** @returns the bytes with the channels in their headers, in memory of their own if they differ */
  push(payload: Buffer): Buffer {
    const decode: DecodeAudioFrameHeader = (bytes, at) => {
      this.#stats.triedHeaders++
      return decodeAdtsHeader(bytes, at)
    }
    const begin = this.#head.length
    const bytes = Buffer.concat([this.#head, payload])
    let at = this.#at
    if (at === undefined || (hasHeader(bytes, at) && decode(bytes, at) === undefined)) {
      const found = findAudioFrame(payload, decode)?.at
      at = found === undefined ? undefined : begin + found
    }
    let isChanged = false
    for (let count = 0; at !== undefined && hasHeader(bytes, at); count++) {
      const header = count < MAX_FRAMES ? decode(bytes, at) : undefined
      if (header !== undefined) {
        if (lacksChannels(bytes, at)) {
          const block = bytes.subarray(at + HEADER_BYTES, at + header.sizeBytes)
          this.#configuration = readProgramConfig(block) ?? this.#configuration
        }
        if (this.#write(bytes, at)) isChanged = true
      }
      at = header && at + header.sizeBytes
    }
    this.#head = Buffer.from(bytes.subarray(at ?? bytes.length))
    this.#at = at && Math.max(0, at - bytes.length)
    // The rest of a header is expected to be like those before.
    if (at !== undefined && this.#write(bytes, at)) isChanged = true
    return isChanged ? bytes.subarray(begin) : payload
  }

  /** Writes the channel configuration into what there is of a header. */
  #write(bytes: Buffer, at: number): boolean {
    if (this.#configuration === 0 || at + 2 >= bytes.length || !lacksChannels(bytes, at))
      return false
    bytes[at + 2]! |= this.#configuration >> 2
    bytes[at + 3]! |= (this.#configuration & 3) << 6
    return true
  }
}

function hasHeader(bytes: Buffer, at: number): boolean {
  return at + HEADER_BYTES <= bytes.length
}

/** Whether the header has channel configuration 0 and no CRC, which would have to be another one. */
function lacksChannels(bytes: Buffer, at: number): boolean {
  const [flags = 0, high = 0, low = 0] = bytes.subarray(at + 1, at + 4)
  return (flags & 1) === 1 && (high & 1) === 0 && (low & 0xc0) === 0
}
