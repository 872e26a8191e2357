/**
 * Folder of a run in the store: its playlists and its index, in the versions that this process may replace.
 *
 * @module
 */
import type { RenditionName } from '../hls/file-names.ts'
import { PLAYLIST_TYPE } from '../hls/store/stream-file.ts'
import { parseIndex, type ArchiveIndex } from './archive-index.ts'
import { INDEX_NAME, type ArchivedRun } from './archived-run.ts'
import type { ArchivedDocument } from './run-playlists.ts'
import type { S3Store } from './s3-store.ts'
import { isConflict } from './store-error.ts'

/** Size of a playlist or an index that is read from the store. */
const MAX_PLAYLIST_BYTES = 64 * 1024 * 1024

/** Cache-Control of files that never change. */
export const FOREVER = 'public, max-age=31536000, immutable'

type PutOptions = Parameters<S3Store['put']>[1]

export class RunFolder {
  /** Key of its files, up to the last slash. */
  readonly path: string
  readonly #store: Pick<S3Store, 'put' | 'get' | 'head'>
  /** By name, of the versions that `load` and `readVersion` have read or `replace` has stored or met: see `ObjectHead`. */
  readonly #etags = new Map<string, string | undefined>()

  constructor(store: Pick<S3Store, 'put' | 'get' | 'head'>, path: string) {
    this.#store = store
    this.path = path
  }

  async read(name: string): Promise<string | undefined> {
    return (await this.#get(name))?.bytes.toString()
  }

  /** Reads a version that `replace` may replace. */
  async readVersion(name: string): Promise<string | undefined> {
    const stored = await this.#get(name)
    if (stored !== undefined) this.#etags.set(name, stored.etag)
    return stored?.bytes.toString()
  }

  /**
   * Reads the index and the playlists that it names into the run.
   *
   * @returns undefined if nothing of it is stored
   * @throws {Error} if somebody else has put other files there, which must not be overwritten
   */
  async load(run: ArchivedRun): Promise<ArchiveIndex | undefined> {
    const text = await this.readVersion(INDEX_NAME)
    if (text === undefined) return undefined
    const index = parseIndex(text)
    const playlists = new Map<RenditionName, string>()
    for (const { name, playlist } of index?.renditions ?? []) {
      const stored = await this.readVersion(playlist)
      if (stored !== undefined) playlists.set(name, stored)
    }
    if (index !== undefined && (await run.restore(index, playlists))) return index
    throw new Error(`${this.path} in the store has other files than those that were stored there`)
  }

  /** @returns ETag */
  put(
    { name, chunks }: ArchivedDocument,
    isFinal: boolean,
    options?: PutOptions,
  ): Promise<string | undefined> {
    const object = {
      key: `${this.path}/${name}`,
      chunks,
      contentType: name === INDEX_NAME ? 'application/json' : PLAYLIST_TYPE,
      cacheControl: isFinal ? FOREVER : 'no-cache',
    }
    return this.#store.put(object, options)
  }

  /**
   * Stores the next version of a file.
   *
   * @returns false if the store has another one than this process knew, which it does now
   */
  async replace(document: ArchivedDocument, isFinal: boolean): Promise<boolean> {
    const { name } = document
    const etags = this.#etags
    const known = etags.has(name) ? { replaces: etags.get(name) } : { createOnly: true }
    try {
      etags.set(name, await this.put(document, isFinal, known))
      return true
    } catch (error) {
      if (!isConflict(error)) throw error
      const stored = await this.#store.head(`${this.path}/${name}`)
      if (stored === undefined) etags.delete(name)
      else etags.set(name, stored.etag)
      return false
    }
  }

  #get(name: string) {
    return this.#store.get(`${this.path}/${name}`, { maxBytes: MAX_PLAYLIST_BYTES })
  }
}
