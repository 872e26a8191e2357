/**
 * Facts about the bytes of a segment or part, alike for all formats.
 *
 * @module
 */
import { TICKS_PER_SEC, TIME_MODULUS } from '../../mpegts/timestamps.ts'

export type Container = 'mpegts' | 'fmp4' | 'packed-audio' | 'webvtt' | 'encrypted' | 'unknown'

/** Decode times of a track in a segment or part of fMP4, as written: exact, unlike those of PES packets. */
interface DecodeTimes {
  readonly ticksPerSec: number
  /** Decode time of the first sample, and that at which the last one ends. */
  readonly firstTicks: number
  readonly nextTicks: number
  /** Sum of the durations of the samples. */
  readonly durationTicks: number
}

export interface InspectedTrack {
  readonly kind: 'video' | 'audio' | 'data'
  /** PID, or track_ID. */
  readonly id: number
  /** fMP4: type of the sample entry, for example `avc1`; of encrypted media the original one. */
  readonly sampleEntry?: string
  /** CODECS value of the bitstream, for example `avc1.64001f`; undefined if unknown. */
  readonly codec: string | undefined
  readonly width?: number
  readonly height?: number
  readonly frameRate?: number
  readonly videoRange?: string
  /** Hertz and number of channels of audio. */
  readonly sampleRate?: number
  readonly channels?: number
  /** Number of access units, or of audio frames. */
  readonly frames: number
  /**
   * Smallest presentation time and end of the last frame by presentation time, in seconds of the media's own clock; NaN
   * without frames. In MPEG-TS and packed audio, times wrap at 2^33 / 90,000 s: compare them with `secondsAfter`.
   */
  readonly startSec: number
  readonly endSec: number
  /** Decode time of the first frame, and expected decode time of the frame after the last one; NaN without frames. */
  readonly firstDecodeSec: number
  readonly nextDecodeSec: number
  /** Longest time from one frame to the next, in decoding order; 0 if unknown. */
  readonly longestFrameSec: number
  /** fMP4 with samples. */
  readonly decodeTimes?: DecodeTimes
  readonly keyFrames: number
  /** Whether the first access unit is a key frame with its parameter sets (or an init segment); true for audio. */
  readonly startsWithKeyFrame: boolean
}

/**
 * Something wrong inside, for the rule of that name.
 *
 * - `format`: no format that HLS knows.
 * - `sync`: a length that is no multiple of 188, or a packet without sync byte.
 * - `tables`: no PAT or no PMT before the first PES packet; `table-order`: other packets before PAT and PMT.
 * - `programs`: several programs. `change`: tracks or their format change inside.
 * - `continuity`: a continuity counter that does not follow on inside.
 * - `transport-error`: `transport_error_indicator`. `null-packets`: stuffing of a constant bit rate.
 * - `pes-cut`: a PES packet that begins before the first or ends after the last packet. `pts`: one without a PTS.
 * - `box`: a box that exceeds its parent, a required box that is missing, or samples outside of mdat.
 * - `parameter-sets`: parameter sets in samples whose sample entry promises that there are none.
 * - `sets-missing`: samples that refer to a PPS which such a sample entry does not have.
 * - `sample-frames`: several frames in a sample.
 * - `timestamp`: packed audio without the time of its first sample.
 */
export type FaultKind =
  | 'format'
  | 'sync'
  | 'tables'
  | 'table-order'
  | 'programs'
  | 'change'
  | 'continuity'
  | 'transport-error'
  | 'null-packets'
  | 'pes-cut'
  | 'pts'
  | 'box'
  | 'parameter-sets'
  | 'sets-missing'
  | 'sample-frames'
  | 'timestamp'

interface MediaFault {
  readonly kind: FaultKind
  /** Sentence: `packet 17, PID 256, has continuity counter 4 after 2`. */
  readonly text: string
}

/** First and last continuity counter of a PID. */
export interface CounterRange {
  readonly first: number
  readonly last: number
  /** Whether the first packet has `discontinuity_indicator`, which allows any counter. */
  readonly announced: boolean
}

export interface MediaFacts {
  readonly container: Container
  readonly sizeBytes: number
  readonly tracks: readonly InspectedTrack[]
  /** MPEG-TS: continuity counters by PID, in order of first occurrence. */
  readonly counters: ReadonlyMap<number, CounterRange>
  /** The first fault of each kind. */
  readonly faults: readonly MediaFault[]
}

/** Faults found so far, the first of each kind. */
export class Faults {
  readonly #texts = new Map<FaultKind, string>()

  get list(): readonly MediaFault[] {
    return [...this.#texts].map(([kind, text]) => ({ kind, text }))
  }

  add(kind: FaultKind, text: string): void {
    if (!this.#texts.has(kind)) this.#texts.set(kind, text)
  }
}

/** Period of the timestamps of MPEG-TS and packed audio, 26.5 hours. */
const WRAP_SEC = TIME_MODULUS / TICKS_PER_SEC

/** @returns seconds from `earlierSec` to `laterSec`, across a wrap of the timestamps if that is nearer */
export function secondsAfter(container: Container, laterSec: number, earlierSec: number): number {
  const difference = laterSec - earlierSec
  if (container === 'fmp4') return difference
  return difference - Math.round(difference / WRAP_SEC) * WRAP_SEC
}
