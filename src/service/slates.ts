/**
 * Slates: clips of `SLATE_DIR` that streams show without an encoder, in memory.
 *
 * @module
 */
import { createReadStream, opendirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { clip } from '../config/setting-names.ts'
import { MillraceError } from '../errors.ts'
import { ClipRemuxer } from '../pace/clip-remuxer.ts'
import { systemClock, type Clock } from '../timing/clock.ts'

const MIB = 1024 * 1024
const MAX_FILE_MIB = 32
const MAX_TOTAL_MIB = 128

/** Bytes that are demuxed at once, before other work has its turn. */
const CHUNK_BYTES = 64 * 1024

/** Time after an attempt of `get` to load a slate until the next one. */
const RETRY_US = 10_000_000

/** A name without a path, of a file that is not hidden. */
const FILE_NAME = /^[^./\\\0][^/\\\0]{0,254}$/

interface SlatesOptions {
  readonly clock?: Pick<Clock, 'nowUs'>
  /** Receives the message of each error of a load that `get` began; default: nothing does. */
  readonly onFailed?: (message: string) => void
}

/** A file is read once: a slate that is to change needs another name, or a restart of the service. */
export class Slates {
  readonly #folder: string
  readonly #clock: Pick<Clock, 'nowUs'>
  readonly #onFailed: (message: string) => void
  readonly #clips = new Map<string, Buffer>()
  readonly #loading = new Map<string, Promise<void>>()
  /** Sizes of the clips, and of the files that are being loaded. */
  readonly #sizes = new Map<string, number>()
  /** Times at which `get` began to load slates, of the latest 10 s. */
  readonly #triedUs = new Map<string, number>()

  /**
   * @param folder  `SLATE_DIR`; empty: there are no slates
   * @throws {MillraceError} `CONFIG_INVALID` if the folder cannot be read
   */
  constructor(folder: string, { clock = systemClock, onFailed = () => {} }: SlatesOptions = {}) {
    this.#folder = folder
    this.#clock = clock
    this.#onFailed = onFailed
    if (folder !== '') checkFolder(folder)
  }

  /**
   * Loads a slate, unless it is loaded.
   *
   * @throws {MillraceError} `BODY_INVALID` with what is wrong with the name or with its file
   */
  load(name: string): Promise<void> {
    if (this.#clips.has(name)) return Promise.resolve()
    const known = this.#loading.get(name)
    if (known !== undefined) return known
    const loading = this.#read(name).finally(() => this.#loading.delete(name))
    this.#loading.set(name, loading)
    return loading
  }

  /**
   * Begins to load a slate that is not loaded, at most once in 10 s.
   *
   * @returns bytes for any number of `LoopedClip`, never to be changed; undefined if the slate is not loaded yet
   */
  get(name: string): Buffer | undefined {
    const bytes = this.#clips.get(name)
    if (bytes === undefined && this.#mayTry(name)) {
      this.load(name).catch((error: Error) => this.#onFailed(error.message))
    }
    return bytes
  }

  #mayTry(name: string): boolean {
    const nowUs = this.#clock.nowUs()
    for (const [tried, atUs] of this.#triedUs)
      if (nowUs - atUs >= RETRY_US) this.#triedUs.delete(tried)
    if (this.#triedUs.has(name)) return false
    this.#triedUs.set(name, nowUs)
    return true
  }

  async #read(name: string): Promise<void> {
    if (this.#folder === '') throw invalid('slate must be absent: SLATE_DIR is not set')
    if (!FILE_NAME.test(name)) throw invalid('slate must be the name of a file in SLATE_DIR')
    const path = join(this.#folder, name)
    try {
      this.#reserve(name, await sizeOf(path))
      const bytes = await remux(path)
      this.#reserve(name, bytes.length)
      this.#clips.set(name, bytes)
    } catch (cause) {
      this.#sizes.delete(name)
      const message = `slate is ${clip(JSON.stringify(name))}: ${explain(cause as Error)}`
      throw new MillraceError('BODY_INVALID', { message, cause })
    }
  }

  /** @throws {MillraceError} `BODY_INVALID` if all slates together are too large */
  #reserve(name: string, sizeBytes: number): void {
    const others = [...this.#sizes].filter(([other]) => other !== name)
    const totalBytes = others.reduce((sum, [, bytes]) => sum + bytes, sizeBytes)
    if (totalBytes > MAX_TOTAL_MIB * MIB) {
      throw invalid(`all slates in use may have ${MAX_TOTAL_MIB} MiB together, until a restart`)
    }
    this.#sizes.set(name, sizeBytes)
  }
}

function checkFolder(folder: string): void {
  try {
    opendirSync(folder).closeSync()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const message = `SLATE_DIR is ${clip(JSON.stringify(folder))}: expected a folder that the service can read (${code})`
    throw new MillraceError('CONFIG_INVALID', { message, cause })
  }
}

/** @throws {MillraceError} `BODY_INVALID` for what is no file, or too large */
async function sizeOf(path: string): Promise<number> {
  const found = await stat(path)
  if (!found.isFile()) throw invalid('it is no file')
  if (found.size > MAX_FILE_MIB * MIB) throw invalid(`it has more than ${MAX_FILE_MIB} MiB`)
  return found.size
}

async function remux(path: string): Promise<Buffer> {
  const remuxer = new ClipRemuxer()
  const options = { highWaterMark: CHUNK_BYTES, end: MAX_FILE_MIB * MIB - 1 }
  for await (const chunk of createReadStream(path, options)) remuxer.push(chunk as Buffer)
  return remuxer.end()
}

function explain(error: Error): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'no such file in SLATE_DIR'
  if (code === 'MEDIA_INVALID') {
    return `${message}; make one: ffmpeg -i FILE -c:v libx264 -g 60 -bf 0 -c:a aac -f mpegts slate.ts`
  }
  return code === 'BODY_INVALID' ? message : `it cannot be read (${code})`
}

function invalid(message: string): MillraceError {
  return new MillraceError('BODY_INVALID', { message })
}
