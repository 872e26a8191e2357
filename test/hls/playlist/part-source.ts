/**
 * Rows of parts and segments for the playlists of a presentation, as a packager makes them.
 */
import type { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import { partUri, segmentUri, type RenditionName } from '../../../src/hls/file-names.ts'
import type { Part } from '../../../src/hls/store/part.ts'
import { createSegment } from '../../../src/hls/store/segment.ts'
import { AUDIO, VIDEO } from '../source.ts'

const WALL_MS = Date.UTC(2026, 0, 1)

interface Row {
  /** Renditions without media in this row. */
  readonly gaps?: readonly RenditionName[]
  readonly durationSec?: number
  readonly sizeBytes?: number
}

export class PartSource {
  readonly #presentation: LivePresentation
  readonly #renditions: RenditionName[]
  readonly #epoch: string
  readonly #open = new Map<RenditionName, Part[]>()
  #serial = 0
  #mediaSequence = 0
  #discontinuities = 0
  #discontinuity = false
  #mediaSec = 0
  #makeChunk = (sizeBytes: number): Buffer => Buffer.alloc(sizeBytes, this.#serial)

  constructor(
    presentation: LivePresentation,
    renditions: readonly RenditionName[] = ['main'],
    epoch = 'e',
  ) {
    this.#presentation = presentation
    this.#epoch = epoch
    this.#renditions = [...renditions]
    presentation.setRenditions(renditions)
  }

  /** Replaces the memory that parts are made of. */
  set makeChunk(makeChunk: (sizeBytes: number) => Buffer) {
    this.#makeChunk = makeChunk
  }

  get renditions(): readonly RenditionName[] {
    return this.#renditions
  }

  /** Media sequence number of the segment that is not complete. */
  get mediaSequence(): number {
    return this.#mediaSequence
  }

  /** Number of parts of that segment. */
  get openParts(): number {
    return this.#open.get('main')?.length ?? 0
  }

  /** Serial of the next part. */
  get serial(): number {
    return this.#serial
  }

  /** Adds a rendition; only between segments. */
  join(rendition: RenditionName): void {
    this.#renditions.push(rendition)
    this.#presentation.setRenditions(this.#renditions)
  }

  /** Publishes the next part of each rendition. */
  part({ gaps = [], durationSec = 0.2, sizeBytes = 188 }: Row = {}): void {
    for (const rendition of this.#renditions) {
      const parts = this.#open.get(rendition) ?? []
      this.#open.set(rendition, parts)
      const isGap = gaps.includes(rendition)
      const part: Part = {
        ...this.#header,
        rendition,
        serial: this.#serial,
        uri: partUri(this.#epoch, rendition, this.#serial),
        segmentUri: segmentUri(this.#epoch, rendition, this.#mediaSequence),
        chunks: isGap ? [] : [this.#makeChunk(sizeBytes)],
        durationSec,
        independent: !isGap && parts.length === 0,
      }
      parts.push(part)
      this.#presentation.appendPart(part)
    }
    this.#serial++
  }

  /** Completes the segment of each rendition; without parts it has media of its own. */
  complete({ endsTimeline = false, durationSec = 2, sizeBytes = 1880 } = {}): void {
    const header = this.#header
    const hasParts = this.openParts > 0
    const mainParts = this.#open.get('main') ?? []
    const lengthSec = hasParts
      ? mainParts.reduce((sum, part) => sum + part.durationSec, 0)
      : durationSec
    const startTicks = Math.round(this.#mediaSec * 90_000)
    this.#mediaSec += lengthSec
    const discontinuities = this.#discontinuities
    for (const rendition of this.#renditions) {
      const parts = this.#open.get(rendition) ?? []
      this.#presentation.append(
        createSegment({
          ...header,
          ...{
            epoch: this.#epoch,
            rendition,
            parts,
            endsTimeline,
            startTicks,
            durationSec: lengthSec,
          },
          uri: segmentUri(this.#epoch, rendition, this.#mediaSequence),
          chunks: hasParts ? parts.flatMap(({ chunks }) => chunks) : [this.#makeChunk(sizeBytes)],
          endTicks: Math.round(this.#mediaSec * 90_000),
          independent: true,
          startsWithKeyFrame: true,
          tracks: [VIDEO, AUDIO],
          videoFrames: Math.round(lengthSec * 30),
        }),
        this.nowMs,
      )
    }
    this.#open.clear()
    this.#mediaSequence++
    this.#discontinuity = endsTimeline
    this.#discontinuities = discontinuities + (endsTimeline ? 1 : 0)
  }

  /** Publishes a segment of `parts` parts. */
  segment(parts = 10, options: { readonly endsTimeline?: boolean } & Row = {}): void {
    for (let index = 0; index < parts; index++) this.part(options)
    this.complete(options)
  }

  get nowMs(): number {
    return this.#mediaSec * 1000
  }

  get #header() {
    return {
      mediaSequence: this.#mediaSequence,
      // A second passes between two timelines.
      programDateTimeMs: WALL_MS + this.#mediaSec * 1000 + this.#discontinuities * 1000,
      discontinuity: this.#discontinuity,
      discontinuitySequence: this.#discontinuities,
    }
  }
}
