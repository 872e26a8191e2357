/**
 * Bytes of playlists, segments, parts and previews sent to viewers, by stream. A forgotten stream takes its counts with it.
 *
 * @module
 */
import type { PlayableStream } from '../../contract/streams.ts'
import { PREVIEW_URI } from '../../hls/file-names.ts'

export type FileKind = 'playlist' | 'segment' | 'part' | 'preview'

export class SentBytes {
  readonly #counts = new WeakMap<PlayableStream, Record<FileKind, number>>()

  add(stream: PlayableStream, name: string, sizeBytes: number): void {
    let counts = this.#counts.get(stream)
    if (counts === undefined) {
      counts = { playlist: 0, segment: 0, part: 0, preview: 0 }
      this.#counts.set(stream, counts)
    }
    counts[kindOf(name)] += sizeBytes
  }

  /** @returns undefined if nothing was sent */
  of(stream: PlayableStream): Readonly<Record<FileKind, number>> | undefined {
    return this.#counts.get(stream)
  }
}

/** Kind of a file by its name, see `hls/file-names.ts`. Init segments, 1 KB for each viewer, count as segments. */
function kindOf(name: string): FileKind {
  if (name.endsWith('.m3u8')) return 'playlist'
  if (name === PREVIEW_URI) return 'preview'
  return /-p\d+\.(?:ts|m4s)$/.test(name) ? 'part' : 'segment'
}
