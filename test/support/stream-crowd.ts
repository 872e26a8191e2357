/**
 * Many live streams in one segment cache, on a simulated clock: minutes run in milliseconds. Segments take no memory,
 * since all are views of the same bytes.
 *
 * @module
 */
import { LivePresentation } from '../../src/hls/playlist/live-presentation.ts'
import { playlistUri, segmentUri, type RenditionName } from '../../src/hls/file-names.ts'
import type { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { createSegment } from '../../src/hls/store/segment.ts'

/** Maximum segment duration. */
const BYTES = Buffer.alloc(64_000_000)

export interface StreamPlan {
  readonly mbps: number
  /** Default 2. */
  readonly segmentSec?: number
  /** Start time in seconds; default 0. */
  readonly fromSec?: number
  /** Time in seconds at which its encoder and its segments go; default never. */
  readonly untilSec?: number
  /** Whether its segments stay when the encoder leaves, as they do until the linger is over. */
  readonly lingers?: boolean
  /** Default 6. */
  readonly playlistSegments?: number
  /** Number of renditions, each of `mbps`; default the main one only. */
  readonly renditions?: readonly RenditionName[]
  /** Size factor of a segment by its number; default 1. */
  readonly size?: (mediaSequence: number) => number
}

export interface ListedSegment {
  readonly uri: string
  readonly gap: boolean
}

/** One stream of the crowd. Figures are counted over all renditions since `restartCounts`. */
export class CrowdStream {
  readonly plan: Required<Omit<StreamPlan, 'untilSec'>> & { readonly untilSec: number }
  readonly presentation: LivePresentation
  segments = 0
  gaps = 0
  readonly #epoch: string
  readonly #sizes = new Map<string, number>()
  #next = 0

  constructor(cache: SegmentCache, epoch: string, plan: StreamPlan) {
    this.plan = {
      ...{ segmentSec: 2, fromSec: 0, untilSec: Infinity, playlistSegments: 6, lingers: false },
      ...{ renditions: ['main'], size: () => 1 },
      ...plan,
    }
    this.#epoch = epoch
    const { playlistSegments } = this.plan
    this.presentation = new LivePresentation({ cache, epoch, playlistSegments })
    this.presentation.setRenditions(this.plan.renditions)
    this.presentation.setTarget(Math.ceil(this.plan.segmentSec))
  }

  /** Time at which the next segment of each rendition is complete. */
  get nextSec(): number {
    const { fromSec, untilSec, segmentSec } = this.plan
    const sec = fromSec + (this.#next + 1) * segmentSec
    return sec > untilSec ? Infinity : sec
  }

  /** Bytes of the segments that can be fetched. */
  get heldBytes(): number {
    for (const uri of this.#sizes.keys()) {
      if (this.presentation.files.get(uri) === undefined) this.#sizes.delete(uri)
    }
    return [...this.#sizes.values()].reduce((sum, size) => sum + size, 0)
  }

  /** Bytes of the segments that can be fetched and are listed, or will be when the playlists appear. */
  get listedBytes(): number {
    if (!this.presentation.playable) return this.heldBytes
    return this.plan.renditions
      .flatMap((name) => this.listed(name))
      .reduce((sum, { uri, gap }) => sum + (gap ? 0 : (this.#sizes.get(uri) ?? 0)), 0)
  }

  /** Segments that the playlist of a rendition lists. */
  listed(name: RenditionName = 'main'): ListedSegment[] {
    const text = this.presentation.files.get(playlistUri(name))?.chunks.join('') ?? ''
    const lines = text.split('\n')
    return lines.flatMap((uri, index) =>
      uri.endsWith('.ts')
        ? [{ uri, gap: lines.slice(Math.max(0, index - 4), index).includes('#EXT-X-GAP') }]
        : [],
    )
  }

  restartCounts(): void {
    this.segments = 0
    this.gaps = 0
  }

  /** @param onGap  called for each segment that the cache refused */
  cut(onGap: (sizeBytes: number) => void = () => {}): void {
    const nowMs = this.nextSec * 1000
    const { mbps, segmentSec, renditions, size } = this.plan
    const mediaSequence = this.#next++
    const sizeBytes = Math.round(((mbps * 1e6) / 8) * segmentSec * size(mediaSequence))
    for (const rendition of renditions) {
      const uri = segmentUri(this.#epoch, rendition, mediaSequence)
      const segment = createSegment({
        ...{ epoch: this.#epoch, mediaSequence, rendition, uri },
        chunks: [BYTES.subarray(0, sizeBytes)],
        durationSec: segmentSec,
        startTicks: mediaSequence * segmentSec * 90_000,
        endTicks: (mediaSequence + 1) * segmentSec * 90_000,
        programDateTimeMs: nowMs - segmentSec * 1000,
        ...{ discontinuity: false, discontinuitySequence: 0 },
        ...{ independent: true, startsWithKeyFrame: true },
        ...{ tracks: [], parts: [], nextDateTimeMs: nowMs, videoFrames: 60 },
      })
      this.presentation.append(segment, nowMs)
      this.segments++
      this.#sizes.set(uri, sizeBytes)
      if (this.presentation.files.get(uri) !== undefined) continue
      this.gaps++
      onGap(sizeBytes)
    }
  }
}

/** Streams on one clock, which `run` advances. */
export class StreamCrowd {
  readonly streams: readonly CrowdStream[]
  readonly #running: Set<CrowdStream>

  constructor(cache: SegmentCache, plans: readonly StreamPlan[]) {
    this.streams = plans.map((plan, index) => new CrowdStream(cache, `s${index}`, plan))
    this.#running = new Set(this.streams)
  }

  /** Streams whose encoder has not left. */
  get running(): readonly CrowdStream[] {
    return [...this.#running]
  }

  count(figure: 'segments' | 'gaps', streams: readonly CrowdStream[] = this.streams): number {
    return streams.reduce((sum, stream) => sum + stream[figure], 0)
  }

  /** @param watch  called for each segment that is cut, listed or refused */
  run(untilSec: number, watch: CrowdWatch = {}): void {
    for (;;) {
      const next = this.streams.reduce((a, b) => (b.nextSec < a.nextSec ? b : a))
      for (const stream of this.#running) {
        if (stream.plan.untilSec >= Math.min(next.nextSec, untilSec)) continue
        this.#running.delete(stream)
        if (stream.plan.lingers) stream.presentation.files.markIdle()
        else stream.presentation.discard()
      }
      if (next.nextSec > untilSec) return
      next.cut((sizeBytes) => watch.onGap?.(next, sizeBytes))
      watch.onCut?.(next)
    }
  }
}

export interface CrowdWatch {
  onCut?(stream: CrowdStream): void
  onGap?(stream: CrowdStream, sizeBytes: number): void
}
