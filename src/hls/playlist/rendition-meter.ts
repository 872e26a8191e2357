/**
 * Tracks, bitrate and frame rate of a rendition for the multivariant playlist, measured in its segments.
 *
 * @module
 */
import type { VideoRange } from '../../codec/video-parameters.ts'
import type { Track } from '../../mpegts/track.ts'
import type { Segment } from '../store/segment.ts'

export interface RenditionSummary {
  /** Tracks of the newest segment with media. */
  readonly tracks: readonly Track[]
  readonly peakBps: number
  readonly averageBps: number
  /** Frames per second: from the bitstream or, if that has none or is far off, counted. */
  readonly frameRate?: number
  /** VIDEO-RANGE of the listed segments; undefined without video. */
  readonly videoRange?: VideoRange
}

/** State of a meter, with which another one can go on. */
export interface MeterState extends BitrateSums {
  readonly tracks: readonly Track[]
  readonly videoFrames: number
  readonly videoSec: number
}

/** Max error of the frame rate in the bitstream: some encoders write the rate of their clock there. */
const MAX_RATE_ERROR = 0.25

export class RenditionMeter {
  #bitrate = new BitrateMeter()
  #tracks: readonly Track[] = []
  /** Number of video frames since the latest discontinuity. */
  #videoFrames = 0
  /** Duration of the segments since the latest discontinuity. */
  #videoSec = 0

  /** Measurements so far; undefined until a segment has media. */
  get summary(): Omit<RenditionSummary, 'videoRange'> | undefined {
    if (this.#tracks.length === 0) return undefined
    const video = this.#tracks.find(({ kind }) => kind === 'video')?.parameters
    const counted = this.#videoFrames / this.#videoSec
    const { frameRate: declared = counted } = video ?? {}
    const frameRate = Math.abs(counted / declared - 1) > MAX_RATE_ERROR ? counted : declared
    return {
      tracks: this.#tracks,
      peakBps: this.#bitrate.peakBps,
      averageBps: this.#bitrate.averageBps,
      ...(this.#videoFrames > 0 && { frameRate }),
    }
  }

  /** Undefined until a segment has media. */
  get state(): MeterState | undefined {
    if (this.#tracks.length === 0) return undefined
    const { sums } = this.#bitrate
    return {
      ...sums,
      tracks: this.#tracks,
      videoFrames: this.#videoFrames,
      videoSec: this.#videoSec,
    }
  }

  restore({ tracks, videoFrames, videoSec, ...sums }: MeterState): void {
    this.#bitrate = new BitrateMeter(sums)
    this.#tracks = tracks
    this.#videoFrames = videoFrames
    this.#videoSec = videoSec
  }

  /** Adds the next segment; ignores gaps. */
  add(segment: Segment, targetDurationSec: number): void {
    const { sizeBytes, durationSec } = segment
    if (sizeBytes === 0) return
    this.#bitrate.add({ sizeBytes, durationSec }, targetDurationSec)
    this.#tracks = segment.tracks
    if (segment.discontinuity) {
      this.#videoFrames = 0
      this.#videoSec = 0
    }
    if (segment.videoFrames === 0) return
    this.#videoFrames += segment.videoFrames
    this.#videoSec += durationSec
  }
}

interface Sample {
  readonly sizeBytes: number
  readonly durationSec: number
}

/** Measurements so far, without the newest segments one by one. */
interface BitrateSums {
  readonly peakBps: number
  readonly sizeBytes: number
  readonly durationSec: number
}

/** Measured BANDWIDTH and AVERAGE-BANDWIDTH of a media playlist (RFC 8216bis 4.4.6.2). */
class BitrateMeter {
  /** Newest segments, oldest first, with a total duration of at most 1.5 target durations. */
  #recent: Sample[] = []
  #peakBps = 0
  #totalBytes = 0
  #totalSec = 0

  constructor(earlier?: BitrateSums) {
    if (earlier === undefined) return
    this.#peakBps = earlier.peakBps
    this.#totalBytes = earlier.sizeBytes
    this.#totalSec = earlier.durationSec
  }

  get sums(): BitrateSums {
    const { peakBps } = this
    return { peakBps, sizeBytes: this.#totalBytes, durationSec: this.#totalSec }
  }

  /**
   * Maximum bitrate of consecutive segments with a total duration of 0.5 to 1.5 target durations. At least the average,
   * which can be greater: a short segment between long ones is in no such run.
   */
  get peakBps(): number {
    return Math.max(this.#peakBps, this.averageBps)
  }

  get averageBps(): number {
    return this.#totalSec === 0 ? 0 : (this.#totalBytes * 8) / this.#totalSec
  }

  /** Adds the next segment. */
  add(sample: Sample, targetDurationSec: number): void {
    this.#totalBytes += sample.sizeBytes
    this.#totalSec += sample.durationSec
    this.#recent.push(sample)
    let bytes = 0
    let sec = 0
    for (let index = this.#recent.length - 1; index >= 0; index--) {
      bytes += this.#recent[index]!.sizeBytes
      sec += this.#recent[index]!.durationSec
      if (sec > 1.5 * targetDurationSec) {
        this.#recent = this.#recent.slice(index + 1)
        return
      }
      if (sec >= 0.5 * targetDurationSec) this.#peakBps = Math.max(this.#peakBps, (bytes * 8) / sec)
    }
  }
}
