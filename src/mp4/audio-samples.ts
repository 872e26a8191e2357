/**
 * Audio frames of PES packets as samples, each with the decode time of its track.
 *
 * @module
 */
import { MAX_FRAMES, type AudioParameters } from '../codec/audio-frame.ts'
import type { AudioFormat, OpusFormat } from './audio-format.ts'
import {
  AC3_READER,
  aacReader,
  FRAME_HEADER_BYTES,
  MPEG_AUDIO_READER,
  opusReader,
  type AudioContent,
  type AudioFrame,
  type AudioFrameReader,
} from './audio-frames.ts'
import { noSampleStats, type Sample, type SampleStats } from './sample.ts'
import { AudioClock, VIDEO_TIMESCALE } from './track-clock.ts'

type AudioSample = Sample<AudioFormat>

/** Codec of the elementary stream, with what only its signaling tells. */
export type AudioSource =
  | {
      readonly codec: 'aac'
      /** Parameters from LATM that was converted to ADTS; they may signal SBR explicitly. */
      readonly signaled?: AudioParameters
    }
  | { readonly codec: 'mp3' | 'ac3' | 'eac3' }
  | { readonly codec: 'opus'; readonly format: OpusFormat }

/** PES packet of audio. */
interface AudioPayload {
  /** Elementary stream bytes; samples are views into them. */
  readonly bytes: Buffer
  /** Time of the first frame that begins in the bytes, unwrapped, 90 kHz (ISO/IEC 13818-1 2.4.3.7). */
  readonly ptsTicks: number
  /** Whether bytes were lost: all are dropped. */
  readonly damaged: boolean
}

/** Maximum size of an incomplete frame; an ADTS frame has at most 8191 bytes, a syncframe 4096. */
const MAX_REST_BYTES = 16_384

/** Maximum number of remembered formats: an encoder changes between one of the programme and one of advertisements. */
const MAX_FORMATS = 8

/** Number of frames, about 1 s, after which it is known whether most can be expressed. */
const MAX_BALANCE = 50

const NOTHING: Buffer = Buffer.alloc(0)

/** Inputs: `push` every PES packet of a timeline in order. */
export class AudioSamples {
  readonly stats: SampleStats
  /** Number of frames that no sample can express; they count as dropped, too. */
  inexpressible = 0
  /** Number of frames lately that a sample can express, less that of the others. */
  #balance = 0
  readonly #reader: AudioFrameReader
  /** Copy of a frame that is not complete. */
  #rest = NOTHING
  #format: AudioFormat | undefined
  #formatKey: string | undefined
  /** Formats so far by their keys: one that returns is the same object. */
  readonly #formats = new Map<string, AudioFormat>()
  #clock: AudioClock | undefined
  /** Time of the next frame by the timestamps, 90 kHz. */
  #frameTicks = 0

  /** @param stats  to count in; default: counters of its own */
  constructor(source: AudioSource, stats = noSampleStats()) {
    this.stats = stats
    this.#reader = readerOf(source)
  }

  /** End of the latest sample, in ticks of its format's timescale; undefined before the first. */
  get nextTicks(): number | undefined {
    return this.#clock?.nextTicks
  }

  push({ bytes, ptsTicks, damaged }: AudioPayload): AudioSample[] {
    if (damaged) {
      this.stats.dropped++
      this.#rest = NOTHING
      return []
    }
    const carried = this.#rest.length
    const joined = carried === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const samples: AudioSample[] = []
    const maxFrames = this.stats.frames + MAX_FRAMES
    let isTimed = false
    let at = 0
    while (at < joined.length && this.stats.frames < maxFrames) {
      const frame = this.#readFrame(joined, at)
      if (frame === undefined) {
        at = this.#skip(joined, at)
        continue
      }
      if (at >= carried && !isTimed) {
        this.#frameTicks = ptsTicks
        isTimed = true
      }
      if (frame === 'incomplete') break
      if (frame.content === undefined) this.inexpressible++
      // A chain without sample is the rest of a damaged one.
      if (frame.content !== undefined) this.#balance = Math.min(this.#balance + 1, MAX_BALANCE)
      else if (frame.isChain !== true) this.#balance = Math.max(this.#balance - 1, -MAX_BALANCE)
      // A few frames among many that no sample can express are noise, with holes at which players stop.
      const sample = this.#balance > 0 && frame.content && this.#createSample(frame.content)
      if (!sample) this.stats.dropped++
      else samples.push(sample)
      at += frame.sizeBytes
    }
    this.#keep(joined.subarray(at))
    return samples
  }

  /** @returns where the next frame may begin */
  #skip(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(this.#reader.syncByte, at + 1)
    const next = found === -1 ? bytes.length : found
    this.stats.candidates++
    this.stats.skippedBytes += next - at
    return next
  }

  /** Reads a frame. One with another format than the frame before counts only when the next frame confirms it. */
  #readFrame(bytes: Buffer, at: number): AudioFrame | 'incomplete' | undefined {
    const frame = this.#reader.read(bytes, at, this.stats)
    if (frame === undefined || frame === 'incomplete' || frame.isChain === true) return frame
    if (frame.content?.formatKey === this.#formatKey && this.#format !== undefined) return frame
    const decode = this.#reader.decodeHeader
    const next = at + frame.sizeBytes
    if (decode === undefined || next === bytes.length) return frame
    if (next + FRAME_HEADER_BYTES > bytes.length) return 'incomplete'
    const [own, following] = [decode(bytes, at), decode(bytes, next)]
    const isConfirmed =
      own?.parameters.codecString === following?.parameters.codecString &&
      own?.parameters.sampleRate === following?.parameters.sampleRate
    return isConfirmed ? frame : undefined
  }

  #createSample(content: AudioContent): AudioSample | undefined {
    const { payload, samples, formatKey } = content
    if (formatKey !== this.#formatKey) {
      const format = this.#formats.get(formatKey) ?? content.createFormat()
      if (this.#formats.size >= MAX_FORMATS) this.#formats.clear()
      this.#formats.set(formatKey, format)
      if (format.timescale !== this.#format?.timescale) {
        this.#clock = new AudioClock(format.timescale, this.stats)
      }
      this.#format = format
      this.#formatKey = formatKey
    }
    const [format, clock] = [this.#format!, this.#clock!]
    const decodeTicks = clock.push(this.#frameTicks, samples)
    this.#frameTicks += (samples * VIDEO_TIMESCALE) / format.timescale
    if (decodeTicks === undefined) return undefined
    return {
      format,
      chunks: [payload],
      sizeBytes: payload.length,
      decodeTicks,
      compositionOffset: 0,
      sync: true,
      continues: false,
    }
  }

  #keep(rest: Buffer): void {
    if (rest.length > MAX_REST_BYTES) {
      this.stats.skippedBytes += rest.length
      this.#rest = NOTHING
    } else {
      this.#rest = rest.length === 0 ? NOTHING : Buffer.from(rest)
    }
  }
}

function readerOf(source: AudioSource): AudioFrameReader {
  switch (source.codec) {
    case 'aac':
      return aacReader(source.signaled)
    case 'opus':
      return opusReader(source.format)
    case 'ac3':
    case 'eac3':
      return AC3_READER
    default:
      return MPEG_AUDIO_READER
  }
}
