/**
 * Measured BANDWIDTH and AVERAGE-BANDWIDTH of a media playlist (RFC 8216bis 4.4.6.2).
 *
 * @module
 */

interface Sample {
  readonly sizeBytes: number
  readonly durationSec: number
}

/** Measurements so far, without the newest segments one by one. */
export interface BitrateSums {
  readonly peakBps: number
  readonly sizeBytes: number
  readonly durationSec: number
}

export class BitrateMeter {
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
