/**
 * Bit rates over the segments of a rendition (RFC 8216bis 4.1, peak segment bit rate).
 *
 * @module
 */
import { totalSec, type ListedSegment } from './playlist/media-playlist.ts'

type SegmentTimes = Pick<ListedSegment, 'sequence' | 'durationSec'>

interface SegmentSize extends SegmentTimes {
  readonly sizeBytes: number
}

/** Limits of the sum of durations that a peak is measured over, in target durations. */
const MIN_SPAN = 0.5
const MAX_SPAN = 1.5

/** Input: `add` segments in order; those that are missing in between interrupt the sums of a peak. */
export class SegmentRates {
  #recent: SegmentSize[] = []
  #peakBps = 0
  #bytes = 0
  #mediaSec = 0

  get summary(): { peakBps: number; averageBps: number; mediaSec: number } {
    const averageBps = this.#mediaSec > 0 ? (this.#bytes * 8) / this.#mediaSec : 0
    return { peakBps: this.#peakBps, averageBps, mediaSec: this.#mediaSec }
  }

  add({ sequence, durationSec }: SegmentTimes, sizeBytes: number, targetSec: number): void {
    if (!(durationSec > 0)) return
    if (this.#recent.at(-1)?.sequence !== sequence - 1) this.#recent = []
    this.#bytes += sizeBytes
    this.#mediaSec += durationSec
    this.#recent.push({ sequence, durationSec, sizeBytes })
    let bytes = 0
    let sec = 0
    for (const segment of this.#recent.toReversed()) {
      bytes += segment.sizeBytes
      sec += segment.durationSec
      if (sec > MAX_SPAN * targetSec) break
      if (sec >= MIN_SPAN * targetSec) this.#peakBps = Math.max(this.#peakBps, (bytes * 8) / sec)
    }
    while (this.#recent.length > 1 && totalSec(this.#recent.slice(1)) > MAX_SPAN * targetSec) {
      this.#recent.shift()
    }
  }
}
