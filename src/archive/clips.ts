/**
 * Clips: playlists of a part of a run beside those of the whole, over the same segments.
 *
 * @module
 */
import type { ClipReport } from '../api/records.ts'
import type { ClipRequest } from '../api/requests.ts'
import { MillraceError } from '../errors.ts'
import { MULTIVARIANT_URI } from '../hls/file-names.ts'
import type { CaptionsPolicy } from '../hls/playlist/multivariant.ts'
import { ArchivedRun } from './archived-run.ts'
import { RunFolder } from './run-folder.ts'
import type { S3Store } from './s3-store.ts'
import { StoreError } from './store-error.ts'

/** Clips at a time: each may read whole playlists. */
const MAX_CLIPS = 4

interface ClipsOptions {
  readonly store: Pick<S3Store, 'put' | 'get' | 'head'>
  /** Base of the URLs of archives. */
  readonly url: string
  readonly captions: CaptionsPolicy
}

interface Clipped extends Pick<ClipRequest, 'from' | 'to'> {
  readonly streamId: string
  /** Name of the run. */
  readonly name: string | undefined
  /** The run, if this process archives it; else it is read from the store. */
  readonly run: ArchivedRun | undefined
}

export class Clips {
  readonly #options: ClipsOptions
  /** Number of clips that are being made. */
  #making = 0

  constructor(options: ClipsOptions) {
    this.#options = options
  }

  /** @throws {MillraceError} `ARCHIVE_NOT_FOUND`, `ARCHIVE_UNAVAILABLE` */
  async make(clipped: Clipped): Promise<ClipReport> {
    if (this.#making >= MAX_CLIPS)
      throw new MillraceError('ARCHIVE_UNAVAILABLE', { message: 'other clips are being made' })
    this.#making++
    try {
      return await this.#store(clipped)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      throw new MillraceError('ARCHIVE_UNAVAILABLE', { message: error.message })
    } finally {
      this.#making--
    }
  }

  async #store({ streamId, name, run, from, to }: Clipped): Promise<ClipReport> {
    const { store, url, captions } = this.#options
    if (name === undefined) throw notFound('give the run: none is here')
    const folder = new RunFolder(store, `${streamId}/${name}`)
    const multivariant = await folder.read(MULTIVARIANT_URI)
    if (multivariant === undefined) throw notFound('nothing of the run is stored')
    let archived = run
    if (archived === undefined) {
      const identity = { streamId, run: name, writer: '' }
      archived = new ArchivedRun({ ...identity, captions, format: 'cmaf', isContinued: true })
      await folder.load(archived)
    }
    const clip = archived.clip(from.getTime(), to.getTime(), multivariant)
    if (clip === undefined) throw notFound('nothing of the run is between from and to')
    const { startMs, endMs, gapSec, documents } = clip
    for (const document of documents) await folder.put(document, true)
    return {
      url: `${url}/${folder.path}/${documents.at(-1)!.name}`,
      from: new Date(startMs),
      to: new Date(endMs),
      durationSec: (endMs - startMs) / 1000,
      gapSec,
    }
  }
}

function notFound(message: string): MillraceError {
  return new MillraceError('ARCHIVE_NOT_FOUND', { message: `no such archive: ${message}` })
}
