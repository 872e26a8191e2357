/**
 * Audio frames of elementary streams as samples hold them: AAC without ADTS header (ISO/IEC 14496-14 5.5), MPEG audio
 * whole, AC-3 and E-AC-3 by six audio blocks with all substreams (ETSI TS 102 366 F.2, F.3), Opus packets without
 * control header.
 *
 * @module
 */
import {
  countAc3Channels,
  decodeAc3Header,
  decodeAc3Syncframe,
  readEac3ChannelMap,
  type Ac3Syncframe,
} from '../codec/ac3.ts'
import { AAC_FRAME_SAMPLES, decodeAdtsHeader, describeAdtsPayload } from '../codec/adts.ts'
import type {
  AudioFrameHeader,
  AudioParameters,
  DecodeAudioFrameHeader,
} from '../codec/audio-frame.ts'
import { decodeMpegAudioHeader } from '../codec/mpeg-audio.ts'
import { decodeOpusAccessUnit } from '../codec/opus.ts'
import type { AudioFormat, Eac3Substream, OpusFormat } from './audio-format.ts'
import type { SampleStats } from './sample.ts'

/** One or several frames that make a sample. */
export interface AudioFrame {
  /** Size in the elementary stream, headers included. */
  readonly sizeBytes: number
  /** Undefined when no sample can express the frame. */
  readonly content: AudioContent | undefined
  /** Whether it consists of several frames, each of which confirms the one before. */
  readonly isChain?: boolean
}

export interface AudioContent {
  /** Bytes of the sample: a view into the input. */
  readonly payload: Buffer
  /** Duration in ticks of the format's timescale. */
  readonly samples: number
  /** Identifies the format: frames with the same text have the same format. */
  readonly formatKey: string
  readonly createFormat: () => AudioFormat
}

/** Reader of the frames of a codec. */
export interface AudioFrameReader {
  /** First byte of the syncword. */
  readonly syncByte: number
  /**
   * @param stats  counts the headers read
   * @returns undefined when no frame begins at `at`; `incomplete` when more bytes are needed to tell, or to end it
   */
  read(bytes: Buffer, at: number, stats: SampleStats): AudioFrame | 'incomplete' | undefined
  /** Decoder of headers, with which a frame is confirmed by the next; undefined where syncwords are unambiguous. */
  readonly decodeHeader?: DecodeAudioFrameHeader
}

/** Bytes that every header decoder needs. */
export const FRAME_HEADER_BYTES = 8

/** Maximum number of syncframes in a sample of E-AC-3: six with one block, each with seven more substreams. */
const MAX_SYNCFRAMES = 48

/** @param signaled  parameters from a StreamMuxConfig, which may signal SBR explicitly; ADTS cannot */
export function aacReader(signaled?: AudioParameters): AudioFrameReader {
  const sbr = /^mp4a\.40\.(5|29)$/.exec(signaled?.codecString ?? '')?.[1]
  const signaledKey =
    sbr === undefined ? '' : `${sbr} ${signaled?.sampleRate} ${signaled?.channels}`
  return {
    syncByte: 0xff,
    decodeHeader: decodeAdtsHeader,
    read: (bytes, at, stats) =>
      readFramed(bytes, at, decodeAdtsHeader, stats, ({ sizeBytes, parameters }) => {
        const described = describeAdtsPayload(bytes, at)
        if (described === undefined) return { sizeBytes, content: undefined }
        const { headerBytes } = described
        const config =
          sbr === undefined || signaled === undefined
            ? described.config
            : { ...described.config, objectType: Number(sbr), parameters: signaled }
        const timescale = parameters.sampleRate
        const content: AudioContent = {
          payload: bytes.subarray(at + headerBytes, at + sizeBytes),
          samples: AAC_FRAME_SAMPLES,
          // Profile, sample rate and channels of the header, without its private bit.
          formatKey: `aac ${bytes[at + 2]! & 0xfd} ${bytes[at + 3]! >> 6} ${signaledKey}`,
          createFormat: () => ({ codec: 'aac', parameters: config.parameters, timescale, config }),
        }
        return { sizeBytes, content }
      }),
  }
}

export const MPEG_AUDIO_READER: AudioFrameReader = {
  syncByte: 0xff,
  decodeHeader: decodeMpegAudioHeader,
  read: (bytes, at, stats) =>
    readFramed(
      bytes,
      at,
      decodeMpegAudioHeader,
      stats,
      ({ codec, sizeBytes, samples, parameters }) => ({
        sizeBytes,
        content: {
          payload: bytes.subarray(at, at + sizeBytes),
          samples,
          formatKey: `${parameters.codecString} ${parameters.sampleRate} ${parameters.channels}`,
          createFormat: () => ({
            codec: codec === 'mp3' ? 'mp3' : 'mp2',
            parameters,
            timescale: parameters.sampleRate,
          }),
        },
      }),
    ),
}

/** Reader of AC-3 and E-AC-3. */
export const AC3_READER: AudioFrameReader = {
  syncByte: 0x0b,
  decodeHeader: decodeAc3Header,
  read: (bytes, at, stats) =>
    readFramed(bytes, at, decodeAc3Header, stats, ({ codec, sizeBytes, samples, parameters }) => {
      const syncframe = decodeAc3Syncframe(bytes, at)!
      if (codec === 'eac3') return readEac3(bytes, at, stats)
      const { sampleRateCode, bitRateCode, bitstreamId, bitstreamMode, audioCodingMode } = syncframe
      const timescale = parameters.sampleRate
      const fields = [sampleRateCode, bitRateCode, bitstreamId, bitstreamMode, audioCodingMode]
      const content: AudioContent = {
        payload: bytes.subarray(at, at + sizeBytes),
        samples,
        formatKey: `ac3 ${fields.join(' ')} ${parameters.channels}`,
        createFormat: () => ({ codec: 'ac3', parameters, timescale, syncframe }),
      }
      return { sizeBytes, content }
    }),
}

/**
 * Joins syncframes up to six audio blocks of the first substream; the next first substream, or the end, ends them. Those
 * that do not come to six blocks, or lack the first substream, are one frame without content, so that none is read again.
 */
function readEac3(
  bytes: Buffer,
  begin: number,
  stats: SampleStats,
): AudioFrame | 'incomplete' | undefined {
  const first = decodeAc3Syncframe(bytes, begin)!
  const hasFirst = !first.dependent && first.substreamId === 0
  const substreams: Eac3Substream[] = []
  let blocks = 0
  let at = begin
  let count = 0
  for (; at < bytes.length && count < MAX_SYNCFRAMES; count++) {
    if (at + FRAME_HEADER_BYTES > bytes.length) return 'incomplete'
    const syncframe = decodeAc3Syncframe(bytes, at)
    stats.frames++
    if (syncframe?.codec !== 'eac3' || syncframe.sampleRate !== first.sampleRate) break
    const isFirst = !syncframe.dependent && syncframe.substreamId === 0
    if (isFirst && (blocks >= 6 || !hasFirst)) break
    const end = at + syncframe.words * 2
    if (end > bytes.length) return 'incomplete'
    if (end < at + FRAME_HEADER_BYTES) break
    if (isFirst) blocks += syncframe.blocks
    describeSubstream(substreams, syncframe, readEac3ChannelMap(bytes.subarray(0, end), at))
    at = end
  }
  const sizeBytes = at - begin
  const isChain = count > 1
  if (blocks < 6) {
    if (hasFirst && at === bytes.length) return 'incomplete'
    return { sizeBytes, content: undefined, isChain }
  }
  const timescale = first.sampleRate
  const samples = blocks * 256
  const parameters = {
    codecString: 'ec-3',
    sampleRate: first.sampleRate,
    channels: countAc3Channels(first),
  }
  const dataRate = Math.ceil((sizeBytes * 8 * timescale) / samples / 1000)
  const content: AudioContent = {
    payload: bytes.subarray(begin, at),
    samples,
    formatKey: `eac3 ${substreams.map(describeKey).join(', ')}`,
    createFormat: () => ({ codec: 'eac3', parameters, timescale, dataRate, substreams }),
  }
  return { sizeBytes, content, isChain }
}

/** Adds a syncframe to the substreams of a sample; frames of a substream that repeats change nothing. */
function describeSubstream(
  substreams: Eac3Substream[],
  syncframe: Ac3Syncframe,
  channelMap = 0,
): void {
  if (!syncframe.dependent) {
    const isKnown = substreams.some((each) => each.syncframe.substreamId === syncframe.substreamId)
    if (!isKnown) substreams.push({ syncframe, dependents: 0, channelMap: 0 })
    return
  }
  const parent = substreams.at(-1)
  if (parent === undefined || syncframe.substreamId < parent.dependents) return
  substreams[substreams.length - 1] = {
    ...parent,
    dependents: parent.dependents + 1,
    channelMap: parent.channelMap | channelMap,
  }
}

function describeKey({ syncframe, dependents, channelMap }: Eac3Substream): string {
  const { sampleRateCode, sampleRate, audioCodingMode, lowFrequencyEffects } = syncframe
  const channels = `${audioCodingMode} ${lowFrequencyEffects}`
  return `${sampleRateCode} ${sampleRate} ${channels} ${dependents} ${channelMap}`
}

/** @param format  of the track, from its descriptor: the packets do not tell it */
export function opusReader(format: OpusFormat): AudioFrameReader {
  return {
    syncByte: 0x7f,
    read(bytes, at, stats) {
      const packet = decodeOpusAccessUnit(bytes, at)
      if (packet === undefined) return undefined
      stats.frames++
      const content: AudioContent = {
        payload: bytes.subarray(packet.start, packet.end),
        samples: packet.samples,
        formatKey: 'opus',
        createFormat: () => format,
      }
      return { sizeBytes: packet.end - at, content }
    },
  }
}

/** Reads a frame whose header tells its size. */
function readFramed(
  bytes: Buffer,
  at: number,
  decode: DecodeAudioFrameHeader,
  stats: SampleStats,
  create: (header: AudioFrameHeader) => AudioFrame | 'incomplete' | undefined,
): AudioFrame | 'incomplete' | undefined {
  if (at + FRAME_HEADER_BYTES > bytes.length) return 'incomplete'
  const header = decode(bytes, at)
  if (header === undefined || header.sizeBytes < FRAME_HEADER_BYTES) return undefined
  stats.frames++
  return at + header.sizeBytes > bytes.length ? 'incomplete' : create(header)
}
