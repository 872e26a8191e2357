/**
 * Division of segments into parts (RFC 8216bis 4.4.4.9). No part lasts longer than PART-TARGET, and none is shorter
 * than 85 % of it except the last part of a segment, whatever the frame rate: a part may end during a frame that lasts
 * longer than the rest of the part.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { PartEnd } from './segment-plan.ts'

/** Minimum duration of a part, as a fraction of PART-TARGET. */
const MIN_FRACTION = 0.85

/**
 * Longest step of the timestamps, in parts: a longer one would publish more parts than a player can have missed, in all
 * renditions at once.
 */
export const MAX_STEP_PARTS = 20

/**
 * Calling order: `fix` the target, `fitAudio` with each change of the audio; then for each segment `start`, `advance` with each
 * frame and, as soon as its time is known, `foresee` before that; `snap` and `end`, and `endTimeline` behind the last one.
 */
export class PartCutter {
  #targetTicks: number | undefined
  /** Maximum duration of a part, beside which whole audio frames do not exceed the target. */
  #maxTicks = Infinity
  /** Durations of the audio frames, by track. */
  #audioTicks: readonly number[] = []
  #limitTicks = 0
  /** Start of the open part; undefined in a segment without parts. */
  #startTicks: number | undefined
  /** Whether the open part has a frame. */
  #hasFrame = false
  #serial = 0

  /**
   * Fixes PART-TARGET, with which the next segments have parts.
   *
   * @param targetSec  undefined for segments without parts
   * @param limitTicks  maximum duration of a segment
   */
  fix(targetSec: number | undefined, limitTicks: number): void {
    this.#limitTicks = limitTicks
    this.#targetTicks = targetSec === undefined ? undefined : Math.round(targetSec * TICKS_PER_SEC)
    this.fitAudio(this.#audioTicks)
  }

  /**
   * Fits the next parts to the audio, whose parts have all frames that begin in them, see `PartTarget`. PART-TARGET is no
   * whole number of frames after a change of codec or sample rate, and would be exceeded.
   *
   * @param audioTicks  durations of the audio frames, by track
   */
  fitAudio(audioTicks: readonly number[]): void {
    this.#audioTicks = audioTicks
    const targetTicks = this.#targetTicks ?? Infinity
    const maxima = audioTicks
      .map((ticks) => Math.floor(Math.floor(targetTicks / ticks) * ticks))
      .filter((ticks) => ticks >= MIN_FRACTION * targetTicks)
    this.#maxTicks = Math.min(targetTicks, ...maxima)
  }

  start(startTicks: number): void {
    this.#startTicks = this.#targetTicks === undefined ? undefined : startTicks
    this.#hasFrame = false
  }

  /**
   * Adds a frame at `ticks`.
   *
   * @param frameTicks  expected duration of the frame
   * @returns ends of the parts before it: more than one if the previous frame lasts longer than a part
   */
  advance(ticks: number, frameTicks: number, randomAccess: boolean): readonly PartEnd[] {
    const ends = this.#endBefore(ticks)
    const isDue = randomAccess || !this.#fits(ticks + frameTicks)
    if (isDue && this.#isLongEnough(ticks)) ends.push(this.#end(ticks))
    this.#hasFrame = true
    return ends
  }

  /**
   * Announces a frame at `ticks`, of which nothing else is known.
   *
   * @param frameTicks  expected duration of the frame
   * @returns end of the part before it if that frame cannot belong to the part, so that the part is complete already
   */
  foresee(ticks: number, frameTicks: number): readonly PartEnd[] {
    const isDue = this.#fits(ticks) && !this.#fits(ticks + frameTicks)
    return isDue && this.#isLongEnough(ticks) ? [this.#end(ticks)] : []
  }

  /**
   * End of the segment that needs no further part for a fraction of one, that is not before the end of its parts, and
   * not further after the start of the open part than the longest step.
   *
   * @param wantedTicks  end of the segment without parts
   * @param frameTicks  expected duration of a frame
   * @param isLast  whether the timeline ends, so that no frame begins in a further part: with reordered frames lost, the
   *   last one is presented after it
   */
  snap(wantedTicks: number, frameTicks: number, isLast = false): number {
    if (this.#startTicks === undefined || this.#targetTicks === undefined) return wantedTicks
    const maxTicks = this.#startTicks + this.#maxTicks
    const endTicks = Math.min(wantedTicks, maxTicks + MAX_STEP_PARTS * this.#targetTicks)
    const fractionTicks = Math.min(frameTicks, (1 - MIN_FRACTION) * this.#targetTicks)
    const slackTicks = isLast ? Infinity : fractionTicks
    if (!this.#hasFrame && endTicks - this.#startTicks < slackTicks) return this.#startTicks
    // Timestamps have stepped back, but the earlier parts are published.
    if (endTicks <= this.#startTicks) return Math.min(this.#startTicks + frameTicks, maxTicks)
    return endTicks - maxTicks < slackTicks ? Math.min(endTicks, maxTicks) : endTicks
  }

  /**
   * Ends the segment.
   *
   * @param endTicks  end of the segment, as `snap` returns it
   * @param last  latest time of a PES packet in the segment, and whether its timeline ends
   * @returns ends of its last parts
   */
  end(endTicks: number, last: Pick<PartEnd, 'untilTicks' | 'endsTimeline'>): readonly PartEnd[] {
    const ends = this.#endBefore(endTicks)
    if (this.#startTicks !== undefined && endTicks > this.#startTicks)
      ends.push(this.#end(endTicks))
    const end = ends.pop()
    this.#startTicks = undefined
    return end === undefined ? ends : [...ends, { ...end, ...last }]
  }

  /**
   * Ends the timeline after `end`. The name of the next part may be hinted: no part gets it, since Shaka 5.2 would append
   * that part with the init segment of this timeline. Before PART-TARGET is fixed, none is hinted.
   */
  endTimeline(): void {
    if (this.#targetTicks !== undefined) this.#serial++
  }

  /** Ends the parts that are over before `ticks`. */
  #endBefore(ticks: number): PartEnd[] {
    const ends: PartEnd[] = []
    while (!this.#fits(ticks)) ends.push(this.#end(this.#startTicks! + this.#maxTicks))
    return ends
  }

  /** Whether the open part may last until `ticks`. */
  #fits(ticks: number): boolean {
    if (this.#startTicks === undefined) return true
    return ticks - this.#startTicks <= this.#maxTicks
  }

  #isLongEnough(ticks: number): boolean {
    if (this.#startTicks === undefined || this.#targetTicks === undefined) return false
    return this.#hasFrame && ticks - this.#startTicks >= MIN_FRACTION * this.#targetTicks
  }

  #end(endTicks: number): PartEnd {
    const durationSec = (endTicks - this.#startTicks!) / TICKS_PER_SEC
    const maxSec = this.#targetTicks! / TICKS_PER_SEC
    const maxSegmentSec = this.#limitTicks / TICKS_PER_SEC
    this.#startTicks = endTicks
    this.#hasFrame = false
    const times = { endTicks, untilTicks: endTicks - 1, durationSec, maxSec, maxSegmentSec }
    return { serial: this.#serial++, ...times, endsTimeline: false }
  }
}
