/**
 * Decode times of a track (ISO/IEC 14496-12 8.8.12; 23000-19 7.3.2.2): they only grow, so that a fragment ends where
 * the next begins. A jump of the timestamps is a new timeline, with new clocks.
 *
 * @module
 */
import type { SampleStats } from './sample.ts'

/** Ticks per second of PTS and DTS, and the timescale of video tracks. */
export const VIDEO_TIMESCALE = 90_000

/** Maximum step between decode times, and composition offset: both are stored in 32 bits. */
const MAX_STEP = 2 ** 31 - 1

interface SampleTimes {
  readonly decodeTicks: number
  readonly compositionOffset: number
}

/** Clock of a video track: the DTS as sent. */
export class VideoClock {
  #latest: number | undefined

  /**
   * Takes the times of an access unit, in decoding order. A DTS that does not follow the one before is moved 1 tick
   * behind it; the PTS stays.
   *
   * @returns undefined when no sample can express them: a time before 0, or a step above 2^31 - 1 ticks
   */
  push(ptsTicks: number, dtsTicks: number): SampleTimes | undefined {
    if (!isTime(dtsTicks) || !Number.isSafeInteger(ptsTicks)) return undefined
    const latest = this.#latest ?? dtsTicks - 1
    if (dtsTicks - latest > MAX_STEP) return undefined
    const decodeTicks = Math.max(dtsTicks, latest + 1)
    const compositionOffset = ptsTicks - decodeTicks
    if (Math.abs(compositionOffset) > MAX_STEP) return undefined
    this.#latest = decodeTicks
    return { decodeTicks, compositionOffset }
  }
}

/** Clock of an audio track: counts samples, since timestamps of 90 kHz are rounded. */
export class AudioClock {
  readonly #sampleRate: number
  readonly #stats: SampleStats
  /** Decode time of the next frame. */
  #next: number | undefined
  /** @param sampleRate  hertz: the timescale of the track */
  constructor(sampleRate: number, stats: SampleStats) {
    this.#sampleRate = sampleRate
    this.#stats = stats
  }

  /** End of the latest frame; undefined before the first. */
  get nextTicks(): number | undefined {
    return this.#next
  }

  /**
   * Takes a frame. Where its PTS is more than a frame late, the count is set to it: a gap. Where it is more than a frame
   * early, the frame overlaps those before and is dropped.
   *
   * @param ptsTicks  90 kHz
   * @param samples  duration of the frame
   * @returns its decode time; undefined when it is dropped, also because of a time before 0 or a step above 2^31 - 1
   */
  push(ptsTicks: number, samples: number): number | undefined {
    const source = Math.round((ptsTicks * this.#sampleRate) / VIDEO_TIMESCALE)
    if (!isTime(source)) return undefined
    const next = this.#next ?? source
    if (next - source > samples || source - next > MAX_STEP) return undefined
    const isGap = source - next > samples
    if (isGap) this.#stats.gaps++
    const decodeTicks = isGap ? source : next
    this.#next = decodeTicks + samples
    return decodeTicks
  }
}

function isTime(ticks: number): boolean {
  return Number.isSafeInteger(ticks) && ticks >= 0
}
