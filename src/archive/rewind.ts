/**
 * Rewind of an archived stream: playlists of its last hours beside the live ones, and the media that they list once it has
 * left the cache: from memory until it is stored, then from the store.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import { playlistUri, REWIND_PREFIX, REWIND_URI } from '../hls/file-names.ts'
import type { FetchedFiles } from '../hls/store/fetched-files.ts'
import type { OlderMedia } from '../hls/store/file-store.ts'
import { createStreamFile, type StreamFile } from '../hls/store/stream-file.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { ArchivedRun } from './archived-run.ts'
import type { S3Store } from './s3-store.ts'

const IS_PLAYLIST = new RegExp(`^(?:${REWIND_PREFIX}.*\\.m3u8|${REWIND_URI})$`)

/** What all streams have in common. */
export interface RewindOptions {
  readonly store: Pick<S3Store, 'get' | 'close'>
  /** Media of all streams, by its key in the store. */
  readonly fetched: FetchedFiles
  /** Maximum size of a segment. */
  readonly maxFileBytes: number
  /** URL at which players reach the store; undefined: they do not. */
  readonly publicUrl: string | undefined
}

interface RewoundStream {
  readonly stream: LiveStream
  readonly run: ArchivedRun
  readonly folder: string
  /** Time that the playlists list, at least. */
  readonly windowSec: number
  /** Differs in each process. */
  readonly versionPrefix: string
  /** @returns media that the store does not have so far */
  readonly unstored: (name: string) => StreamFile | undefined
}

/** `publish` after each change of the run. */
export class Rewind implements OlderMedia {
  readonly #options: RewindOptions & RewoundStream
  #revision = 0

  constructor(options: RewindOptions & RewoundStream) {
    this.#options = options
    options.stream.archived.setOlder(this)
  }

  /** Adds the next version of the playlists to the files of the stream, or the first one. */
  publish(): void {
    const { run, stream, windowSec } = this.#options
    const names = run.windowRenditions
    if (names.length === 0) return
    for (const name of names) {
      const render = (isDelta: boolean) =>
        this.#playlist('media', run.renderWindow(name, { windowSec, isDelta }) ?? [])
      stream.archived.replace(REWIND_PREFIX + playlistUri(name), render, undefined, true)
    }
    stream.archived.replace(REWIND_URI, () => this.#playlist('multivariant', [run.renderWindows()]))
  }

  get(name: string): StreamFile | undefined {
    const { unstored, publicUrl, folder, fetched } = this.#options
    const file = unstored(name) ?? fetched.get(this.#keyOf(name))
    if (file !== undefined || publicUrl === undefined) return file
    const described = this.#describe(name, [])
    return described && { ...described, location: `${publicUrl}/${folder}/${name}` }
  }

  has(name: string): boolean {
    return this.#options.run.renditionOf(name) !== undefined
  }

  fetch(name: string): Promise<void> | undefined {
    const { store, fetched, maxFileBytes } = this.#options
    const key = this.#keyOf(name)
    return fetched.fetch(key, async () => {
      const stored = await store.get(key, { maxBytes: maxFileBytes })
      const file = stored && this.#describe(name, [stored.bytes])
      if (file === undefined) throw new MillraceError('FILE_NOT_FOUND')
      return file
    })
  }

  refusal(name: string): MillraceError | undefined {
    const { run, fetched } = this.#options
    if (!run.isOpen && IS_PLAYLIST.test(name)) return new MillraceError('ARCHIVE_UNAVAILABLE')
    return fetched.refusal(this.#keyOf(name))
  }

  /** The file as it was while it was in the cache. */
  #describe(name: string, chunks: readonly Buffer[]): StreamFile | undefined {
    const { run } = this.#options
    const rendition = run.renditionOf(name)
    if (rendition === undefined) return undefined
    const kind = name.endsWith('.mp4') ? 'init' : 'segment'
    const content = { rendition, chunks, version: name, targetDurationSec: run.targetSec }
    return createStreamFile(kind, content)
  }

  #playlist(kind: 'media' | 'multivariant', chunks: readonly Buffer[]): StreamFile {
    const { versionPrefix, run } = this.#options
    return createStreamFile(`${kind}-playlist`, {
      chunks,
      version: `${versionPrefix}-${++this.#revision}`,
      targetDurationSec: run.targetSec,
    })
  }

  #keyOf(name: string): string {
    return `${this.#options.folder}/${name}`
  }
}
