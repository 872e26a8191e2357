/**
 * Frame header decoders of audio, by codec.
 *
 * @module
 */
import { decodeAc3Header } from './ac3.ts'
import { decodeAdtsHeader } from './adts.ts'
import type { DecodeAudioFrameHeader } from './audio-frame.ts'
import { decodeMpegAudioHeader } from './mpeg-audio.ts'

export const AUDIO_DECODERS: Readonly<Record<string, DecodeAudioFrameHeader>> = {
  aac: decodeAdtsHeader,
  mp2: decodeMpegAudioHeader,
  mp3: decodeMpegAudioHeader,
  ac3: decodeAc3Header,
  eac3: decodeAc3Header,
}
