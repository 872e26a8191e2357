/**
 * Preview of a stream: its newest key frame as a file. It is made when it is first read, and takes no memory of its own
 * but for its tables, so it is available while its segment is in the cache.
 *
 * @module
 */
import { firstFrame } from '../../mpegts/mux/key-frame.ts'
import type { Track } from '../../mpegts/track.ts'
import { createStreamFile, type StreamFile } from './stream-file.ts'

/** Lifetime in caches in seconds: the next segment brings another key frame. */
const MAX_AGE_SEC = 1

/** Key frame at the start of a segment. */
export interface KeyFrame {
  readonly segmentUri: string
  readonly video: Track
}

/** `set` each segment that begins with a key frame. */
export class PreviewFile {
  readonly #cached: (segmentUri: string) => StreamFile | undefined
  #keyFrame: KeyFrame | undefined
  /** Preview of the key frame; `file` is undefined if the frame is too large. */
  #made: { readonly file: StreamFile | undefined } | undefined

  /** @param cached  returns a complete segment that is in the cache */
  constructor(cached: (segmentUri: string) => StreamFile | undefined) {
    this.#cached = cached
  }

  set(keyFrame: KeyFrame | undefined): void {
    this.#keyFrame = keyFrame
    this.#made = undefined
  }

  get(): StreamFile | undefined {
    if (this.#keyFrame === undefined) return undefined
    const segment = this.#cached(this.#keyFrame.segmentUri)
    if (segment === undefined) this.set(undefined)
    else this.#made ??= { file: createPreview(segment, this.#keyFrame.video) }
    return this.#made?.file
  }
}

function createPreview({ chunks: segment, version }: StreamFile, video: Track) {
  const chunks = firstFrame(segment, video)
  const preview = { version: `${version}-preview`, targetDurationSec: MAX_AGE_SEC }
  return chunks && createStreamFile('preview', { ...preview, chunks })
}
