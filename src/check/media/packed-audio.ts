/**
 * Packed audio: audio frames without a container, behind an ID3 tag with the time of the first (RFC 8216bis 3.1.3).
 *
 *   | "ID3" | version 16 | flags 8 | size 4 x 7 | frames: id 32, size 32, flags 16, data … |
 *
 * @module
 */
import type { DecodeAudioFrameHeader } from '../../codec/audio-frame.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import { AUDIO_DECODERS, AudioFrames } from './audio-frames.ts'
import { Faults } from './faults.ts'
import { measureFrames } from './frame-list.ts'
import type { MediaFacts } from './inspected-media.ts'

const HEADER_BYTES = 10

/** Owner of the PRIV frame, behind which 64 bits hold a timestamp of 33. */
const OWNER = Buffer.from('com.apple.streaming.transportStreamTimestamp\0')

/** @returns undefined if the bytes are no packed audio */
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

/** @returns offset behind all ID3 tags */
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
