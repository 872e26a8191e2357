/**
 * A low-latency stream in a real `FileStore`, whose parts and segments the test publishes.
 *
 * @module
 */
import { partUri, playlistUri, segmentUri, type RenditionName } from '../../src/hls/file-names.ts'
import { FileStore } from '../../src/hls/store/file-store.ts'
import type { SegmentOwner } from '../../src/hls/store/cache-account.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import type { StoredStream } from '../http/memory-service.ts'

const OWNER: SegmentOwner = {
  windowSize: { minBytes: 0, wantedBytes: 0 },
  shrink: () => false,
  drop: () => undefined,
}

export const TARGET_DURATION_SEC = 2
const PART_TARGET_SEC = 0.5

export interface LiveStoreOptions {
  readonly maxWaitMs?: number
  readonly maxWaiters?: number
  /** Rendition whose playlist and parts it has; default: the main one. */
  readonly rendition?: RenditionName
}

export class LiveStore implements StoredStream {
  readonly status = 'STREAMING'
  readonly live = true
  readonly files: FileStore
  readonly #maxWaitMs: number
  readonly #rendition: RenditionName
  #mediaSequence = 6
  #parts = 0
  #nextParts = 0
  #serial = 0
  /** Number of rendered playlists. */
  rendered = 0

  constructor({
    maxWaitMs = 6000,
    maxWaiters = 10_000,
    rendition = 'main',
  }: LiveStoreOptions = {}) {
    this.#rendition = rendition
    const cache = new SegmentCache({ maxBytes: 100_000_000 })
    this.files = new FileStore({ cache, owner: OWNER, maxWaiters })
    this.#maxWaitMs = maxWaitMs
  }

  /** URI of the next part. */
  get hint(): string {
    return partUri('a', this.#rendition, this.#serial)
  }

  /** Publishes a part of the open segment. */
  addPart(sizeBytes = 1000): void {
    const chunks = [Buffer.alloc(sizeBytes, this.#serial)]
    const media = { version: this.hint, targetDurationSec: TARGET_DURATION_SEC, chunks }
    const segment = segmentUri('a', this.#rendition, this.#mediaSequence + 1)
    this.files.putPart(this.hint, createStreamFile('part', media), segment)
    this.#serial++
    this.#nextParts++
    this.publish()
  }

  /** Ends the open segment. */
  endSegment(): void {
    this.#mediaSequence++
    this.#parts = this.#nextParts
    this.#nextParts = 0
    this.publish()
  }

  /** Publishes a version of the playlists. */
  publish(): void {
    const version = `${this.#mediaSequence}.${this.#nextParts}`
    const file = { version, targetDurationSec: TARGET_DURATION_SEC }
    const maxWaitMs = this.#maxWaitMs
    const lines = this.#lines()
    this.files.replace(
      playlistUri(this.#rendition),
      (delta) => {
        this.rendered++
        const chunks = [Buffer.from(`${lines}#${version}${delta ? ' delta' : ''}\n`)]
        const playlist = createStreamFile('media-playlist', { ...file, chunks })
        const tag = delta ? `${version}-delta` : version
        return { ...playlist, version: tag, blocking: { maxAgeSec: 12, maxWaitMs } }
      },
      {
        mediaSequence: this.#mediaSequence,
        parts: this.#parts,
        nextParts: this.#nextParts,
        partTargetSec: PART_TARGET_SEC,
        hint: this.hint,
        skippable: true,
      },
    )
    this.publishMaster('master.m3u8', 'ts.m3u8')
  }

  /** Publishes a version of the multivariant playlists alone. */
  publishMaster(...names: readonly string[]): void {
    const version = `${this.#mediaSequence}.${this.#nextParts}`
    const chunks = [Buffer.from('#EXTM3U\n')]
    const content = { version, targetDurationSec: TARGET_DURATION_SEC, chunks }
    for (const name of names)
      this.files.replace(name, () => createStreamFile('multivariant-playlist', content))
  }

  /** Tags that tell how far the stream is; the older segments are left out. */
  #lines(): string {
    const parts = (count: number) => '#EXT-X-PART:DURATION=0.5,URI="p.ts"\n'.repeat(count)
    return [
      '#EXTM3U',
      `#EXT-X-TARGETDURATION:${TARGET_DURATION_SEC}`,
      '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12',
      `#EXT-X-PART-INF:PART-TARGET=${PART_TARGET_SEC}`,
      `#EXT-X-MEDIA-SEQUENCE:${this.#mediaSequence}`,
      `${parts(this.#parts)}#EXTINF:2,`,
      segmentUri('a', this.#rendition, this.#mediaSequence),
      `${parts(this.#nextParts)}#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${this.hint}"`,
      '',
    ].join('\n')
  }
}
