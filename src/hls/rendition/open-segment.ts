/**
 * Properties of the segment and the part being written, from their PES packets.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import type { SegmentPlan } from '../cut/segment-plan.ts'
import { SNAP_TICKS } from '../cut/timeline.ts'
import type { CarriedTracks } from './carried-tracks.ts'

/** Contents of the part being written. */
export class OpenPart {
  readonly #startsWithKey: boolean
  #hasAudio = false

  /** @param startsWithKey  whether its first PES packet is a random access point of the lead track */
  constructor(startsWithKey: boolean) {
    this.#startsWithKey = startsWithKey
  }

  push({ track }: PesUnit): void {
    if (track.kind === 'audio') this.#hasAudio = true
  }

  /**
   * INDEPENDENT: without audio of a rendition that has audio, hls.js would not create an audio buffer (hls.js#7245).
   */
  isIndependent(carried: CarriedTracks | undefined): boolean {
    return this.#startsWithKey && (carried?.audio === undefined || this.#hasAudio)
  }
}

export class OpenSegment {
  /** Tracks of the segment, with the parameters known so far. */
  carried: CarriedTracks
  readonly #first: PesUnit
  #frames = 0
  /** Whether a frame is presented before the first one and refers to an earlier segment. */
  #hasLeadingFrames = false

  /** @param first  first PES packet of the lead track */
  constructor(carried: CarriedTracks, first: PesUnit) {
    this.carried = carried
    this.#first = first
  }

  /** Number of frames of the lead track. */
  get frames(): number {
    return this.#frames
  }

  get startsWithKeyFrame(): boolean {
    const { track, randomAccess, damaged } = this.#first
    return track.kind === 'video' && randomAccess && !damaged
  }

  /** Adds the next PES packet of the lead track. */
  push({ startsFrame, ptsTicks, decodableLeading }: PesUnit): void {
    if (!startsFrame) return
    this.#frames++
    if (ptsTicks < this.#first.ptsTicks && !decodableLeading) this.#hasLeadingFrames = true
  }

  /** Whether the segment begins with a random access point and, if it has video, within 50 ms of the planned start. */
  isAligned({ keyTicks, startTicks }: SegmentPlan): boolean {
    const { randomAccess, ptsTicks } = this.#first
    if (!randomAccess) return false
    const offsetTicks = Math.abs(ptsTicks - (keyTicks ?? startTicks))
    return this.carried.video === undefined || offsetTicks <= SNAP_TICKS
  }

  /** Whether the segment begins as planned, and all its frames can be decoded without other segments. */
  isIndependent(plan: SegmentPlan): boolean {
    return this.isAligned(plan) && !this.#hasLeadingFrames
  }
}
