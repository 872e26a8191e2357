/**
 * Times of audio PES packets, not all of which have a PTS: ISO/IEC 13818-1 2.7.4 asks for one each 0.7 s.
 *
 * @module
 */
import {
  findAudioFrame,
  MAX_FRAMES,
  MAX_SEARCHED_BYTES,
  type AudioFrameHeader,
  type DecodeAudioFrameHeader,
} from '../../codec/audio-frame.ts'
import { TICKS_PER_SEC } from '../timestamps.ts'
import type { DemuxerStats } from './demuxer-stats.ts'

const NOTHING = Buffer.alloc(0)

/**
 * A PES packet without a PTS goes on from the latest PTS by the frames that have begun since. The next PTS corrects what has
 * drifted. Nothing is counted in a track whose PES packets all have a PTS.
 *
 * Inputs: `push` every PES packet of the track.
 */
export class AudioFrameClock {
  readonly #stats: DemuxerStats
  /** Whether a PTS was missing. */
  #isCounting = false
  /** Time of the next frame to count, 90 kHz; undefined before the first PTS. */
  #ticks: number | undefined
  /** Elementary stream bytes that are not counted yet: of two PES packets or, while no frame is found, of some more. */
  #bytes: Buffer = NOTHING
  /** Offset of the next frame from the start of `#bytes`, also behind them; undefined until it is searched for. */
  #at: number | undefined

  /** @param stats  to count in */
  constructor(stats: DemuxerStats) {
    this.#stats = stats
  }

  /**
   * @param payload  elementary stream bytes of the PES packet
   * @param decode  of the codec
   * @param stampTicks  its PTS, unwrapped, 90 kHz; undefined without one
   * @returns its PTS or, without one, the time of the first frame that begins in it; undefined when none does, or before the
   *   first PTS
   */
  push(
    payload: Buffer,
    decode: DecodeAudioFrameHeader,
    stampTicks: number | undefined,
  ): number | undefined {
    this.#isCounting ||= stampTicks === undefined && this.#ticks !== undefined
    const begins = this.#isCounting && this.#count(payload, decode)
    if (stampTicks !== undefined) {
      this.#ticks = stampTicks
      if (this.#at === undefined) this.#bytes = payload
      return stampTicks
    }
    return begins && this.#ticks !== undefined ? Math.round(this.#ticks) : undefined
  }

  /**
   * Counts the frames that begin before a payload, and keeps the payload from the first one that begins in it.
   *
   * @returns whether one does
   */
  #count(payload: Buffer, decode: DecodeAudioFrameHeader): boolean {
    const counted: DecodeAudioFrameHeader = (bytes, at) => {
      this.#stats.triedHeaders++
      return decode(bytes, at)
    }
    const begin = this.#bytes.length
    const bytes = Buffer.concat([this.#bytes, payload])
    let at = this.#at ?? findAudioFrame(bytes, counted)?.at
    if (at === undefined) {
      this.#bytes = bytes.length < MAX_SEARCHED_BYTES ? bytes : payload
      return false
    }
    let ticks = this.#ticks ?? 0
    for (let count = 0; at !== undefined && at < begin; count++) {
      const header: AudioFrameHeader | undefined =
        count < MAX_FRAMES ? counted(bytes, at) : undefined
      if (header !== undefined) ticks += ticksOf(header)
      at = header && at + header.sizeBytes
    }
    this.#ticks = ticks
    this.#bytes = bytes.subarray(at ?? begin)
    // Behind bytes that are no frame, the next one is searched for.
    this.#at = at && Math.max(0, at - bytes.length)
    return this.#bytes.length > 0
  }
}

function ticksOf({ samples, parameters }: AudioFrameHeader): number {
  return (samples * TICKS_PER_SEC) / parameters.sampleRate
}
