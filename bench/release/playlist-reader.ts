/**
 * Reads from low-latency playlists what a viewer fetches next.
 *
 * @module
 */
import { gunzipSync } from 'node:zlib'

/** Newest media of a playlist. */
export interface Edge {
  /** Number of the newest part in its stream. */
  readonly newestPart: number
  /** URI of a part that the playlist lists or hints. */
  partUri(number: number): string
  /** Delivery directives for the next version of the playlist. */
  readonly next: { readonly mediaSequence: number; readonly part: number }
}

const HINT = /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="(.*-p)(\d+)\.m4s"/

/** @returns undefined for a playlist without a hint */
export function readEdge(playlist: string): Edge | undefined {
  const [, prefix, hinted] = HINT.exec(playlist) ?? []
  if (prefix === undefined) return undefined
  const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(playlist)?.[1] ?? 0)
  // The parts of a segment come before its EXTINF.
  const open = playlist.slice(playlist.lastIndexOf('#EXTINF:'))
  return {
    newestPart: Number(hinted) - 1,
    partUri: (number) => `${prefix}${number}.m4s`,
    next: {
      mediaSequence: first + count(playlist, /#EXTINF:/g),
      part: count(open, /#EXT-X-PART:/g),
    },
  }
}

/** Reader for many viewers of one stream: a version is parsed once, and compared for the other viewers. */
export class EdgeReader {
  #bytes = Buffer.alloc(0)
  #edge: Edge | undefined

  /** @param bytes  compressed playlist, copied if it is a new one */
  read(bytes: Buffer): Edge | undefined {
    if (!bytes.equals(this.#bytes)) {
      this.#bytes = Buffer.from(bytes)
      this.#edge = readEdge(gunzipSync(bytes).toString())
    }
    return this.#edge
  }
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0
}
