/**
 * Viewer of every version of the playlists of a stream and of all media that they list, with the judge of `millrace check`.
 *
 * @module
 */
import { parseMediaPlaylist } from '../../src/check/playlist/media-playlist.ts'
import { formatOf, playlistUri, type RenditionName } from '../../src/hls/file-names.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import { StreamJudge } from '../support/stream-judge.ts'

const ORIGIN = 'https://media.example/'

export class StreamViewer {
  /** What is broken, by playlist. */
  readonly complaints: string[] = []
  /** Number of segments and parts that were judged. */
  media = 0
  readonly #stream: LiveStream
  readonly #renditions: readonly RenditionName[]
  readonly #judges = { ts: new StreamJudge(), cmaf: new StreamJudge() }
  /** Versions of the playlists. */
  readonly #versions = new Map<string, string>()
  readonly #loaded = new Set<string>()

  constructor(stream: LiveStream, renditions: readonly RenditionName[]) {
    this.#stream = stream
    this.#renditions = renditions
  }

  /** Reads the playlists that have changed, and the media that is new in them. */
  look(): void {
    for (const name of this.#renditions) {
      const uri = playlistUri(name)
      const file = this.#stream.files.get(uri)
      if (file === undefined || file.version === this.#versions.get(uri)) continue
      this.#versions.set(uri, file.version)
      const text = file.chunks.join('')
      this.#complain(uri, this.#judges[formatOf(name)].playlist(uri, text))
      for (const { uri: segment, map, parts, gap } of parseMediaPlaylist(text, ORIGIN + uri)
        .segments) {
        if (map !== undefined) this.#load('init', map.url.slice(ORIGIN.length), name)
        for (const part of parts) if (!part.gap) this.#load('segment', part.uri, name)
        if (segment !== undefined && !gap) this.#load('segment', segment, name)
      }
    }
  }

  #load(role: 'init' | 'segment', uri: string, name: RenditionName): void {
    if (this.#loaded.has(uri)) return
    this.#loaded.add(uri)
    if (role === 'segment') this.media++
    const file = this.#stream.files.get(uri)
    const playlist = playlistUri(name)
    if (file === undefined) this.#complain(playlist, [`${uri} is gone`])
    else {
      const bytes = Buffer.concat(file.chunks)
      this.#complain(playlist, this.#judges[formatOf(name)][role](uri, bytes, playlist))
    }
  }

  #complain(uri: string, complaints: readonly string[]): void {
    this.complaints.push(...complaints.map((complaint) => `${uri}: ${complaint}`))
  }
}
