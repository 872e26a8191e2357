/**
 * What a multivariant playlist says of a rendition, measured over its segments.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { Segment } from '../store/segment.ts'
import { BitrateMeter } from './bitrate.ts'

export interface RenditionSummary {
  /** Tracks of the newest segment that is no gap. */
  readonly tracks: readonly Track[]
  readonly peakBps: number
  readonly averageBps: number
  /** Frames per second: from the bitstream, or counted. */
  readonly frameRate?: number
  /** EXT-X-INDEPENDENT-SEGMENTS holds for all segments so far. */
  readonly independentSegments: boolean
}

export class RenditionMeter {
  readonly #bitrate = new BitrateMeter()
  #tracks: readonly Track[] = []
  #independentSegments = true
  // Since the newest discontinuity, to measure the frame rate:
  #videoFrames = 0
  #videoSec = 0

  /** EXT-X-INDEPENDENT-SEGMENTS holds for all segments so far. */
  get independentSegments(): boolean {
    return this.#independentSegments
  }

  /** Undefined before there was any media. */
  get summary(): RenditionSummary | undefined {
    if (this.#tracks.length === 0) return undefined
    const video = this.#tracks.find(({ kind }) => kind === 'video')?.parameters
    const frameRate = video?.frameRate ?? this.#videoFrames / this.#videoSec
    return {
      tracks: this.#tracks,
      peakBps: this.#bitrate.peakBps,
      averageBps: this.#bitrate.averageBps,
      ...(this.#videoFrames > 0 && { frameRate }),
      independentSegments: this.#independentSegments,
    }
  }

  /** The next segment; a gap tells nothing. */
  add(segment: Segment): void {
    const { sizeBytes, durationSec, targetDurationSec } = segment
    if (sizeBytes === 0) return
    this.#bitrate.add({ sizeBytes, durationSec }, targetDurationSec)
    this.#tracks = segment.tracks
    // RFC 8216bis 4.4.3.2 speaks of all segments: once one is not, players must not count on it any more.
    if (!segment.independent) this.#independentSegments = false
    if (segment.discontinuity) {
      this.#videoFrames = 0
      this.#videoSec = 0
    }
    this.#videoFrames += segment.videoFrames
    this.#videoSec += durationSec
  }
}
