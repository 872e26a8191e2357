/**
 * Totals of a stream since it started, over all encoder connections.
 *
 * @module
 */
import type { StreamTotals } from '../contract/report.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { Segment } from '../hls/store/segment.ts'

export class Totals {
  #freeSequence: SequenceNumbers
  #publishers = 0
  #segments = 0
  #mainSegments = 0
  #segmentBytes = 0
  #durationSec = 0

  constructor(sequenceStart: SequenceNumbers = { media: 0, discontinuity: 0 }) {
    this.#freeSequence = sequenceStart
  }

  /** Lowest sequence numbers that the stream has not used. */
  get freeSequence(): SequenceNumbers {
    return this.#freeSequence
  }

  /** Number of segments of the main rendition, gaps included. */
  get mainSegments(): number {
    return this.#mainSegments
  }

  addPublisher(): void {
    this.#publishers++
  }

  /** Counts a segment; a gap counts only toward `mainSegments`, the duration and the sequence numbers. */
  addSegment(segment: Segment): void {
    const { rendition, sizeBytes, durationSec, mediaSequence, discontinuitySequence } = segment
    if (rendition === 'main') {
      this.#mainSegments++
      this.#durationSec += durationSec
      this.#freeSequence = { media: mediaSequence + 1, discontinuity: discontinuitySequence + 1 }
    }
    if (sizeBytes === 0) return
    this.#segments++
    this.#segmentBytes += sizeBytes
  }

  report(payloadsDropped: number): StreamTotals {
    return {
      segments: this.#segments,
      segmentBytes: this.#segmentBytes,
      durationSec: this.#durationSec,
      payloadsDropped,
      publishers: this.#publishers,
    }
  }
}
