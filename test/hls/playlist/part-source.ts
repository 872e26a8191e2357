/**
 * Rows of parts and segments for the playlists of a presentation, as a packager makes them.
 */
import type { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import {
  initUri,
  isAudioRendition,
  isCmafRendition,
  partUri,
  segmentUri,
  type RenditionName,
} from '../../../src/hls/file-names.ts'
import type { Track } from '../../../src/mpegts/track.ts'
import { type Part, type InitSegment, createSegment } from '../../../src/hls/store/segment.ts'
import { AUDIO, VIDEO } from '../source.ts'

const WALL_MS = Date.UTC(2026, 0, 1)

interface Row {
  /** Renditions without media in this row. */
  readonly gaps?: readonly RenditionName[]
  readonly durationSec?: number
  readonly sizeBytes?: number
}

/** Renditions of transport stream have segments without parts. */
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
  #format = 0
  #makeChunk = (sizeBytes: number): Buffer => Buffer.alloc(sizeBytes, this.#serial)

  constructor(
    presentation: LivePresentation,
    renditions: readonly RenditionName[] = ['cmaf-video-1'],
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
    return this.#openParts.length
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

  /** Gives the next parts another init segment. */
  changeFormat(): void {
    this.#format++
  }

  /** Publishes the next part of each rendition of CMAF. */
  part({ gaps = [], durationSec = 0.2, sizeBytes = 188 }: Row = {}): void {
    for (const rendition of this.#renditions.filter(isCmafRendition)) {
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
        endsTimeline: false,
        ...(!isGap && this.#mapOf(rendition)),
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
    const lengthSec = hasParts
      ? this.#openParts.reduce((sum, part) => sum + part.durationSec, 0)
      : durationSec
    const startTicks = Math.round(this.#mediaSec * 90_000)
    this.#mediaSec += lengthSec
    const discontinuities = this.#discontinuities
    for (const rendition of this.#renditions) {
      const parts = this.#open.get(rendition) ?? []
      const isOfParts = parts.length > 0
      const map = isOfParts ? parts.find((part) => part.map)?.map : this.#mapOf(rendition).map
      this.#presentation.append(
        createSegment({
          ...header,
          ...{
            epoch: this.#epoch,
            rendition,
            parts,
            nextDateTimeMs: endsTimeline ? undefined : header.programDateTimeMs + lengthSec * 1000,
            startTicks,
            durationSec: lengthSec,
          },
          uri: segmentUri(this.#epoch, rendition, this.#mediaSequence),
          chunks: isOfParts ? parts.flatMap(({ chunks }) => chunks) : [this.#makeChunk(sizeBytes)],
          endTicks: Math.round(this.#mediaSec * 90_000),
          independent: true,
          startsWithKeyFrame: true,
          tracks: tracksOf(rendition),
          videoFrames: Math.round(lengthSec * 30),
          ...(map && { map }),
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

  get #openParts(): readonly Part[] {
    const [parts = []] = this.#open.values()
    return parts
  }

  #mapOf(rendition: RenditionName): { readonly map?: InitSegment } {
    if (!isCmafRendition(rendition)) return {}
    const uri = initUri(this.#epoch, rendition, `${this.#format}`)
    return { map: { uri, bytes: Buffer.from(uri) } }
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

function tracksOf(rendition: RenditionName): readonly Track[] {
  if (isAudioRendition(rendition)) return [AUDIO]
  return isCmafRendition(rendition) ? [VIDEO] : [VIDEO, AUDIO]
}
