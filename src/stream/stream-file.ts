/**
 * A file of a stream as playback serves it.
 *
 * @module
 */
import type { RenderedPlaylist } from '../hls/playlist/live-playlist.ts'
import { joinChunks } from '../hls/store/segment.ts'

export interface StreamFile {
  readonly kind: 'media-playlist' | 'multivariant-playlist' | 'segment'
  /** Its bytes in order. Shared by all readers; not to be changed. */
  readonly chunks: readonly Buffer[]
  /** The chunks in one buffer: a copy at each access, unless it is a single chunk. */
  readonly bytes: Buffer
  /** Changes whenever the bytes do. */
  readonly version: string
  readonly targetDurationSec: number
}

export function createFile(content: Omit<StreamFile, 'bytes'>): StreamFile {
  const { chunks } = content
  return {
    ...content,
    get bytes() {
      return joinChunks(chunks)
    },
  }
}

export function createPlaylistFile(
  kind: 'media-playlist' | 'multivariant-playlist',
  { bytes, version }: RenderedPlaylist,
  targetDurationSec: number,
): StreamFile {
  return createFile({ kind, chunks: [bytes], version, targetDurationSec })
}
