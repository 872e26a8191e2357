/**
 * Audio frames: in the PES packets of a transport stream, or packed audio, which has no container but an ID3 tag with the
 * time of the first frame (RFC 8216bis 3.1.3).
 *
 *   | "ID3" | version 16 | flags 8 | size 4 x 7 | frames: id 32, size 32, flags 16, data … |
 *
 * @module
 */
import { AUDIO_DECODERS } from '../../codec/audio-decoders.ts'
import type { AudioFrameHeader, DecodeAudioFrameHeader } from '../../codec/audio-frame.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import { Faults, type MediaFacts } from './media-facts.ts'
import { MAX_LISTED_FRAMES, measureFrames, type Frame } from './frame-list.ts'

const HEADER_BYTES = 10

/** Owner of the PRIV frame; 64 bits after it hold a timestamp of 33 bits. */
const OWNER = Buffer.from('com.apple.streaming.transportStreamTimestamp\0')

/** @returns undefined if the bytes are not packed audio */
export function inspectPackedAudio(bytes: Buffer): MediaFacts | undefined {
  const audioAt = skipTags(bytes)
  const decode = findDecoder(bytes, audioAt)
  if (decode === undefined) return undefined
  const faults = new Faults()
  const ownerAt = bytes.subarray(0, audioAt).indexOf(OWNER)
  const timeAt = ownerAt + OWNER.length
  const hasTime = ownerAt >= 0 && timeAt + 8 <= audioAt
  if (!hasTime) faults.add('timestamp', 'no ID3 tag tells the time of the first frame')
  const high = hasTime ? bytes.readUInt32BE(timeAt) & 1 : 0
  const audio = new AudioFrames(decode)
  const ptsTicks = hasTime ? high * 2 ** 32 + bytes.readUInt32BE(timeAt + 4) : 0
  audio.push(bytes.subarray(audioAt), ptsTicks)
  const { codecString: codec, sampleRate, channels } = audio.header?.parameters ?? {}
  const track = {
    ...({ kind: 'audio', id: 0, codec } as const),
    ...(sampleRate !== undefined && { sampleRate }),
    ...(channels !== undefined && { channels }),
    ...measureFrames(audio.frames, TICKS_PER_SEC),
    startsWithKeyFrame: true,
  }
  return {
    container: 'packed-audio',
    sizeBytes: bytes.length,
    tracks: [track],
    counters: new Map(),
    faults: faults.list,
  }
}

/** @returns offset of the first byte after all ID3 tags */
function skipTags(bytes: Buffer): number {
  let at = 0
  while (at + HEADER_BYTES <= bytes.length && bytes.toString('latin1', at, at + 3) === 'ID3') {
    const [a, b, c, d] = bytes.subarray(at + 6, at + HEADER_BYTES)
    const size = ((a! & 127) << 21) | ((b! & 127) << 14) | ((c! & 127) << 7) | (d! & 127)
    at += HEADER_BYTES + size
  }
  return Math.min(at, bytes.length)
}

function findDecoder(bytes: Buffer, at: number): DecodeAudioFrameHeader | undefined {
  return Object.values(AUDIO_DECODERS).find((decode) => {
    const first = decode(bytes, at)
    if (first === undefined) return false
    const end = at + first.sizeBytes
    return end === bytes.length || decode(bytes, end) !== undefined
  })
}

/** Input: `push` the payload of each PES packet in order. A frame may begin in one PES packet and end in another. */
export class AudioFrames {
  readonly #decode: DecodeAudioFrameHeader
  readonly #frames: Frame[] = []
  /** Bytes of a frame that is not complete. */
  #rest: Buffer = Buffer.alloc(0)
  #header: AudioFrameHeader | undefined
  #nextTicks = 0

  constructor(decode: DecodeAudioFrameHeader) {
    this.#decode = decode
  }

  get frames(): readonly Frame[] {
    return this.#frames
  }

  /** Header of the latest frame. */
  get header(): AudioFrameHeader | undefined {
    return this.#header
  }

  /** @param ptsTicks  time of the first frame that begins in the payload, 90 kHz (ISO/IEC 13818-1 2.4.3.7) */
  push(payload: Buffer, ptsTicks: number): void {
    const carried = this.#rest.length
    const bytes = carried === 0 ? payload : Buffer.concat([this.#rest, payload])
    let isTimed = false
    let at = 0
    while (at < bytes.length && this.#frames.length < MAX_LISTED_FRAMES) {
      const header = this.#decode(bytes, at)
      // Bytes that begin no frame are skipped; a header cut off at the end is completed by the next payload.
      if (header === undefined && bytes.length - at >= 8) {
        at++
        continue
      }
      if (header === undefined || at + header.sizeBytes > bytes.length) break
      if (at >= carried && !isTimed) {
        this.#nextTicks = ptsTicks
        isTimed = true
      }
      this.#add(header)
      at += header.sizeBytes
    }
    // No frame is larger than 8191 bytes, the maximum of ADTS.
    this.#rest = bytes.length - at < 8192 ? bytes.subarray(at) : Buffer.alloc(0)
  }

  #add(header: AudioFrameHeader): void {
    const { samples } = header
    if (samples === 0) return
    this.#header = header
    const durationTicks = (samples * TICKS_PER_SEC) / header.parameters.sampleRate
    const ptsTicks = this.#nextTicks
    this.#frames.push({ ptsTicks, dtsTicks: ptsTicks, durationTicks, isKey: true })
    this.#nextTicks += durationTicks
  }
}
