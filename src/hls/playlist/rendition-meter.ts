/**
 * Tracks, bitrate and frame rate of a rendition for the multivariant playlist, measured in its segments.
 *
 * @module
 */
import type { VideoRange } from '../../codec/video-range.ts'
import type { Track } from '../../mpegts/track.ts'
import type { Segment } from '../store/segment.ts'
import { BitrateMeter, type BitrateSums } from './bitrate.ts'

export interface RenditionSummary {
  /** Tracks of the newest segment with media. */
  readonly tracks: readonly Track[]
  readonly peakBps: number
  readonly averageBps: number
  /** Frames per second: from the bitstream or, if that has none, counted. */
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
    const frameRate = video?.frameRate ?? this.#videoFrames / this.#videoSec
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
    this.#videoFrames += segment.videoFrames
    this.#videoSec += durationSec
  }
}
