/**
 * Totals of a stream since it started, over all encoder connections.
 *
 * @module
 */
import type { StreamTotals } from '../api/records.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { RenditionName } from '../hls/file-names.ts'
import type { SegmentStart, Segment } from '../hls/store/segment.ts'

export class Totals {
  #freeSequence: SequenceNumbers
  #first: RenditionName | undefined
  #publishers = 0
  #sourceChanges = 0
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

  /** Number of segments of the first rendition, gaps included. */
  get mainSegments(): number {
    return this.#mainSegments
  }

  addPublisher(): void {
    this.#publishers++
  }

  addSourceChange(): void {
    this.#sourceChanges++
  }

  /** Takes the numbers of a segment that begins. */
  startSegment({ mediaSequence, discontinuitySequence }: SegmentStart): void {
    this.#freeSequence = { media: mediaSequence + 1, discontinuity: discontinuitySequence + 1 }
  }

  /** Counts a segment; a gap counts only toward `mainSegments` and the duration. */
  addSegment(segment: Segment): void {
    const { rendition, sizeBytes, durationSec } = segment
    this.#first ??= rendition
    if (rendition === this.#first) {
      this.#mainSegments++
      this.#durationSec += durationSec
    }
    if (sizeBytes === 0) return
    this.#segments++
    this.#segmentBytes += sizeBytes
  }

  /** @param counted  elsewhere */
  report(counted: Pick<StreamTotals, 'dropped' | 'packetsDamaged' | 'srtBytesSent'>): StreamTotals {
    return {
      segments: this.#segments,
      segmentBytes: this.#segmentBytes,
      durationSec: this.#durationSec,
      publishers: this.#publishers,
      sourceChanges: this.#sourceChanges,
      ...counted,
    }
  }
}
