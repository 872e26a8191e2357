/**
 * Files of the parts of one stream's segments. A part shares the media of its segment, so it is available while its segment
 * is open or in the cache, which counts its objects with the segment.
 * The playlist drops it earlier, but a player that has stalled may still request it (RFC 8216bis 6.2.2).
 *
 * @module
 */
import type { StreamFile } from './stream-file.ts'

type FilesByUri = Map<string, StreamFile>

/** Memory of a part beside its media: of its names, file object and views. */
export const PART_BYTES = 600

/** `add` each part, then `complete` its segment. */
export class PartFiles {
  readonly #cached: (segmentUri: string) => StreamFile | undefined
  /** URI of the segment, by URI of the part, oldest first; of released segments too, until the next `add`. */
  readonly #segmentUris = new Map<string, string>()
  /** Parts of the segments that are not complete, by URI of the segment. */
  readonly #open = new Map<string, FilesByUri>()
  /** Parts of cached segments: their memory is referenced no longer than the segment. */
  readonly #complete = new WeakMap<StreamFile, FilesByUri>()

  /** @param cached  returns a complete segment that is in the cache */
  constructor(cached: (segmentUri: string) => StreamFile | undefined) {
    this.#cached = cached
  }

  get(uri: string): StreamFile | undefined {
    const segmentUri = this.#segmentUris.get(uri)
    return segmentUri === undefined ? undefined : this.#filesOf(segmentUri)?.get(uri)
  }

  /** Memory of the objects of the parts of a segment that is not complete. */
  sizeOf(segmentUri: string): number {
    return (this.#open.get(segmentUri)?.size ?? 0) * PART_BYTES
  }

  add(uri: string, file: StreamFile, segmentUri: string): void {
    this.#prune()
    const files = this.#open.get(segmentUri) ?? new Map<string, StreamFile>()
    this.#open.set(segmentUri, files)
    files.set(uri, file)
    this.#segmentUris.set(uri, segmentUri)
  }

  /** @param segment  undefined if the cache has refused the segment: its parts are dropped */
  complete(segmentUri: string, segment: StreamFile | undefined): void {
    const files = this.#open.get(segmentUri)
    if (files === undefined) return
    this.#open.delete(segmentUri)
    if (segment !== undefined) this.#complete.set(segment, files)
    else for (const uri of files.keys()) this.#segmentUris.delete(uri)
  }

  discard(): void {
    this.#segmentUris.clear()
    this.#open.clear()
  }

  #filesOf(segmentUri: string): FilesByUri | undefined {
    const open = this.#open.get(segmentUri)
    if (open !== undefined) return open
    const segment = this.#cached(segmentUri)
    return segment && this.#complete.get(segment)
  }

  /** Forgets the oldest parts, whose segments the cache has released. */
  #prune(): void {
    for (const [uri, segmentUri] of this.#segmentUris) {
      if (this.#filesOf(segmentUri) !== undefined) return
      this.#segmentUris.delete(uri)
    }
  }
}
