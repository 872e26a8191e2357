/**
 * PART-TARGET (RFC 8216bis 4.4.3.7), chosen once by the rhythm of the media so far. Parts of a constant number of frames
 * last almost as long as the target, which leaves room for rounded timestamps.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Codec, Track } from '../../mpegts/track.ts'

/** PART-TARGET as a multiple of the usual duration of a part: four percent are 8 ms of jitter for 200 ms. */
const HEADROOM = 1.04

/** Maximum PART-TARGET: a longer one has no advantage over segments. */
const MAX_TICKS = 1 * TICKS_PER_SEC

/** Range in which the number of frames may differ from the desired one so that it divides the GOP. */
const MIN_CHANGE = 0.6
const MAX_CHANGE = 1.5

/** Maximum number of durations per track. */
const DURATIONS_REMEMBERED = 1024

/** Fraction of the durations that are outliers, at each end. */
const TRIMMED = 0.1

/**
 * Inputs: `addFrame` with each PES packet of the reference track, `addOther` with those of other tracks; `choose`.
 *
 * Parts of audio have whole frames: those that begin in the part of the video at their side, so that they may last up to
 * a frame longer.
 */
export class PartTarget {
  readonly #partTicks: number
  readonly #frames = new Rhythm()
  /** Duration of the longest audio frames. */
  #audioTicks = 0

  /** @param partSec  desired duration of a part */
  constructor(partSec: number) {
    this.#partTicks = partSec * TICKS_PER_SEC
  }

  addFrame(unit: PesUnit): void {
    const { dtsTicks, startsFrame } = unit
    if (startsFrame) this.#frames.push(dtsTicks)
    this.addOther(unit)
  }

  addOther({ track }: PesUnit): void {
    if (track.kind === 'audio') this.#audioTicks = Math.max(this.#audioTicks, frameTicksOf(track))
  }

  /**
   * @param gopTicks  usual duration of a GOP; 0 if unknown
   * @param segmentTicks  minimum duration of a segment
   * @returns PART-TARGET in seconds; undefined if a frame lasts too long for parts
   */
  choose(gopTicks: number, segmentTicks: number): number | undefined {
    const frameTicks = this.#frames.meanTicks
    if (frameTicks === undefined || frameTicks > MAX_TICKS) return undefined
    const maxFrames = Math.max(1, Math.floor(MAX_TICKS / HEADROOM / frameTicks))
    const wanted = Math.max(1, Math.round(this.#partTicks / frameTicks))
    const gopFrames = gopTicks < segmentTicks ? Math.round(gopTicks / frameTicks) : 0
    const frames = Math.min(maxFrames, nearestDivisor(gopFrames, wanted) ?? wanted)
    const ticks = Math.min(Math.ceil(frames * frameTicks * HEADROOM), MAX_TICKS)
    return this.#wholeAudioFrames(ticks) / TICKS_PER_SEC
  }

  #wholeAudioFrames(ticks: number): number {
    if (this.#audioTicks === 0) return ticks
    return Math.ceil(Math.ceil(ticks / this.#audioTicks) * this.#audioTicks)
  }
}

/** Samples in an audio frame (ISO/IEC 14496-3 4.5.1.1, 11172-3 2.4.2.1; ETSI TS 102 366 4.1). */
const FRAME_SAMPLES: Readonly<Partial<Record<Codec, number>>> = {
  aac: 1024,
  mp3: 1152,
  mp2: 1152,
  ac3: 1536,
  eac3: 1536,
}

/** CODECS of AAC with SBR, which doubles the sample rate. */
const HAS_SBR = /^mp4a\.40\.(5|29)$/

/** @returns duration of an audio frame of the track; 0 if it is unknown */
export function frameTicksOf({ codec, parameters }: Track): number {
  const { sampleRate = Infinity, codecString = '' } = parameters ?? {}
  const samples = (FRAME_SAMPLES[codec] ?? 0) * (HAS_SBR.test(codecString) ? 2 : 1)
  return (samples * TICKS_PER_SEC) / sampleRate
}

/** Durations of the PES packets of a track, by their differences in time. */
class Rhythm {
  #latestTicks: number | undefined
  readonly #durations: number[] = []

  push(dtsTicks: number): void {
    const ticks = dtsTicks - (this.#latestTicks ?? dtsTicks)
    this.#latestTicks = dtsTicks
    if (ticks > 0 && this.#durations.length < DURATIONS_REMEMBERED) this.#durations.push(ticks)
  }

  /** Mean of the usual durations; undefined if there are none. */
  get meanTicks(): number | undefined {
    const usual = this.#usual
    return usual.length === 0 ? undefined : usual.reduce((sum, it) => sum + it, 0) / usual.length
  }

  /** Sorted durations without the outliers: media lost in transmission leaves gaps. */
  get #usual(): number[] {
    const trimmed = Math.floor(this.#durations.length * TRIMMED)
    return this.#durations
      .toSorted((a, b) => a - b)
      .slice(trimmed, this.#durations.length - trimmed)
  }
}

/** @returns divisor of `total` nearest to `wanted`; undefined if none is near it */
function nearestDivisor(total: number, wanted: number): number | undefined {
  if (total === 0) return undefined
  let nearest: number | undefined
  const lowest = Math.max(1, Math.ceil(wanted * MIN_CHANGE))
  for (let count = lowest; count <= wanted * MAX_CHANGE; count++) {
    if (total % count !== 0) continue
    if (nearest === undefined || Math.abs(count - wanted) < Math.abs(nearest - wanted))
      nearest = count
  }
  return nearest
}
