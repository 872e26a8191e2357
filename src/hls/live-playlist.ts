/**
 * The rolling media playlist of a stream, and the multivariant playlist that describes it.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'
import { BitrateMeter } from './bitrate.ts'
import { formatMediaPlaylist, formatMultivariantPlaylist } from './playlist-format.ts'
import type { PlaylistSegment, Variant } from './playlist.ts'
import type { SegmentCache, SegmentOwner } from './segment-cache.ts'
import type { Segment } from './segment.ts'

/** Name of the media playlist beside the multivariant playlist. */
const MEDIA_PLAYLIST_URI = 'playlist.m3u8'

/** RFC 8216 6.2.2: no segment leaves while fewer target durations than this remain. */
const LEAST_TARGET_DURATIONS = 3

export interface LivePlaylistOptions {
  /** Keeps the bytes of what is listed. */
  readonly cache: SegmentCache
  /** Name of this start of the stream, part of every version. */
  readonly epoch: string
  /** At least so many segments are listed, memory permitting. */
  readonly playlistSegments: number
}

/** A playlist as it is now. */
export interface RenderedPlaylist {
  /** UTF-8 text, shared by all readers; not to be changed. */
  readonly bytes: Buffer
  /** Changes whenever the bytes do; fit for a strong ETag. */
  readonly version: string
}

interface Entry {
  readonly mediaSequence: number
  readonly segment: PlaylistSegment
  /** Of the longest playlist that listed it. */
  longestPlaylistSec: number
}

/**
 * `append` each segment of an epoch in order, `end` when no more will come, `discard` when nobody may ask any more.
 * `media`, `multivariant` and `segment` answer what players ask for. Times are those of `SegmentCache`.
 */
export class LivePlaylist implements SegmentOwner {
  readonly #options: LivePlaylistOptions
  readonly #bitrate = new BitrateMeter()
  #entries: Entry[] = []
  #targetDurationSec = 0
  #discontinuitySequence = 0
  #independentSegments = true
  #ended = false
  #tracks: readonly Track[] = []
  /** Of the time line of the newest segment, to measure its frame rate. */
  #videoFrames = 0
  #videoSec = 0
  #revision = 0
  /** Undefined where the text must be rendered anew. */
  #media: RenderedPlaylist | undefined
  #multivariant: RenderedPlaylist | undefined

  constructor(options: LivePlaylistOptions) {
    this.#options = options
  }

  /** EXT-X-TARGETDURATION; 0 before the first segment. */
  get targetDurationSec(): number {
    return this.#targetDurationSec
  }

  /** The media playlist as it is now; undefined before the first segment. */
  media(): RenderedPlaylist | undefined {
    const oldest = this.#entries[0]
    if (oldest === undefined) return undefined
    this.#media ??= this.#render(
      formatMediaPlaylist({
        targetDurationSec: this.#targetDurationSec,
        mediaSequence: oldest.mediaSequence,
        discontinuitySequence: this.#discontinuitySequence,
        independentSegments: this.#independentSegments,
        ended: this.#ended,
        segments: this.#entries.map(({ segment }) => segment),
      }),
    )
    return this.#media
  }

  /** The multivariant playlist as it is now; undefined before the first segment. */
  multivariant(): RenderedPlaylist | undefined {
    if (this.#entries.length === 0) return undefined
    this.#multivariant ??= this.#render(formatMultivariantPlaylist({ variants: [this.#variant()] }))
    return this.#multivariant
  }

  /** Bytes of a segment that is listed or still owed. */
  segment(uri: string): Buffer | undefined {
    return this.#options.cache.get(this, uri)
  }

  append(segment: Segment, nowMs: number): void {
    const { cache, playlistSegments } = this.#options
    const { uri, bytes, durationSec, programDateTimeMs, discontinuity } = segment
    const gap = !cache.put(this, uri, { bytes, nowMs })
    this.#targetDurationSec = segment.targetDurationSec
    this.#entries.push({
      mediaSequence: segment.mediaSequence,
      segment: { uri, durationSec, programDateTimeMs, discontinuity, gap },
      longestPlaylistSec: 0,
    })
    while (this.#entries.length > playlistSegments && this.shrink(nowMs));
    const playlistSec = this.#durationSec
    for (const entry of this.#entries) {
      entry.longestPlaylistSec = Math.max(entry.longestPlaylistSec, playlistSec)
    }
    this.#describe(segment)
    this.#media = undefined
    this.#multivariant = undefined
  }

  /** EXT-X-ENDLIST */
  end(): void {
    this.#ended = true
    this.#media = undefined
  }

  shrink(nowMs: number): boolean {
    const oldest = this.#entries[0]
    if (oldest === undefined) return false
    const { uri, durationSec, discontinuity } = oldest.segment
    const leastSec = LEAST_TARGET_DURATIONS * this.#targetDurationSec
    if (this.#durationSec - durationSec < leastSec) return false
    this.#entries.shift()
    if (discontinuity) this.#discontinuitySequence++
    const owedSec = durationSec + oldest.longestPlaylistSec
    this.#options.cache.retire(this, uri, nowMs + owedSec * 1000)
    this.#media = undefined
    return true
  }

  /** Releases all its segments. */
  discard(): void {
    this.#options.cache.discard(this)
    this.#entries = []
  }

  get #durationSec(): number {
    return this.#entries.reduce((sum, { segment }) => sum + segment.durationSec, 0)
  }

  #describe(segment: Segment): void {
    const { bytes, durationSec, targetDurationSec } = segment
    this.#bitrate.add({ sizeBytes: bytes.length, durationSec }, targetDurationSec)
    this.#tracks = segment.tracks
    // RFC 8216bis 4.4.3.2 speaks of all segments: once one is not, players must not count on it any more.
    if (!segment.independent) this.#independentSegments = false
    if (segment.discontinuity) {
      this.#videoFrames = 0
      this.#videoSec = 0
    }
    this.#videoFrames += segment.videoFrames
    this.#videoSec += durationSec
  }

  #variant(): Variant {
    const video = this.#tracks.find(({ kind }) => kind === 'video')?.parameters
    const { width, height } = video ?? {}
    const frameRate = video?.frameRate ?? this.#videoFrames / this.#videoSec
    return {
      uri: MEDIA_PLAYLIST_URI,
      peakBps: this.#bitrate.peakBps,
      averageBps: this.#bitrate.averageBps,
      codecs: this.#tracks.flatMap(({ parameters }) => parameters?.codecString ?? []),
      ...(width !== undefined && height !== undefined && { resolution: { width, height } }),
      ...(this.#videoFrames > 0 && { frameRate }),
    }
  }

  #render(text: string): RenderedPlaylist {
    this.#revision++
    return { bytes: Buffer.from(text), version: `${this.#options.epoch}-${this.#revision}` }
  }
}
