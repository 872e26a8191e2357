/**
 * A segment while it is being written, as its lead track shows it.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import type { SegmentPlan } from '../cut/segment-plan.ts'
import { SNAP_TICKS } from '../cut/timeline.ts'
import type { CarriedTracks } from './carried-tracks.ts'

export class OpenSegment {
  /** Its tracks, with the parameters known by now. */
  carried: CarriedTracks
  readonly #first: PesUnit
  #frames = 0
  #hasLeadingFrames = false

  /** @param first  unit of the lead track that it begins with */
  constructor(carried: CarriedTracks, first: PesUnit) {
    this.carried = carried
    this.#first = first
  }

  /** Number of frames of the lead track. */
  get frames(): number {
    return this.#frames
  }

  /** The next unit of the lead track. */
  push({ startsFrame, ptsTicks, decodableLeading }: PesUnit): void {
    if (!startsFrame) return
    this.#frames++
    if (ptsTicks < this.#first.ptsTicks && !decodableLeading) this.#hasLeadingFrames = true
  }

  /** It begins with a random access point, and one with a video where the reference track has its own. */
  isAligned({ keyTicks, startTicks }: SegmentPlan): boolean {
    const { randomAccess, ptsTicks } = this.#first
    if (!randomAccess) return false
    const offsetTicks = Math.abs(ptsTicks - (keyTicks ?? startTicks))
    return this.carried.video === undefined || offsetTicks <= SNAP_TICKS
  }

  /** Every frame can be decoded: no frame shown before the first one needs an earlier segment. */
  isIndependent(plan: SegmentPlan): boolean {
    return this.isAligned(plan) && !this.#hasLeadingFrames
  }
}
