/**
 * Bytes of playlists, segments, parts and previews sent to viewers, by stream. A forgotten stream takes its counts with it.
 *
 * @module
 */
import type { PlayableStream } from '../../playback/playback-source.ts'
import { isPartUri, isPlaylistUri, PREVIEW_URI } from '../../hls/file-names.ts'

type FileKind = 'playlist' | 'segment' | 'part' | 'preview'

export class SentBytes {
  readonly #counts = new WeakMap<PlayableStream, Record<FileKind, number>>()
  #total = 0

  /** Bytes of all streams, also of those that are forgotten. */
  get total(): number {
    return this.#total
  }

  add(stream: PlayableStream, name: string, sizeBytes: number): void {
    let counts = this.#counts.get(stream)
    if (counts === undefined) {
      counts = { playlist: 0, segment: 0, part: 0, preview: 0 }
      this.#counts.set(stream, counts)
    }
    counts[kindOf(name)] += sizeBytes
    this.#total += sizeBytes
  }

  /** @returns undefined if nothing was sent */
  of(stream: PlayableStream): Readonly<Record<FileKind, number>> | undefined {
    return this.#counts.get(stream)
  }
}

/** Kind of a file by its name. Init segments, 1 KB for each viewer, count as segments. */
function kindOf(name: string): FileKind {
  if (isPlaylistUri(name)) return 'playlist'
  if (name === PREVIEW_URI) return 'preview'
  return isPartUri(name) ? 'part' : 'segment'
}
