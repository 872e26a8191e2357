/**
 * Transport stream clips encoded by ffmpeg.
 *
 * @module
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Clip {
  readonly bytes: Buffer
  /** Time that an encoder takes to send it. */
  readonly sec: number
}

export const TEST_PATTERN = lavfi('testsrc2=s=320x180:r=30')
export const TONE = lavfi('sine=f=440:r=48000')
export const OTHER_TONE = lavfi('sine=f=880:r=48000')

/** One thread, so that the bytes are the same on every machine. */
const X264_BARE = ['-c:v', 'libx264', '-preset', 'ultrafast', '-threads', '1', '-crf', '32']

/** A key frame every 2 s, all of them IDR. */
export const X264 = [...X264_BARE, ...gop(60), '-bf', '0']
export const X265 = ['-c:v', 'libx265', '-preset', 'ultrafast', '-crf', '35', '-x265-params']
export const AAC = ['-c:a', 'aac', '-b:a', '96k']

export function lavfi(graph: string): string[] {
  return ['-f', 'lavfi', '-i', graph]
}

/** Sets a fixed GOP length. */
export function gop(frames: number): string[] {
  return ['-g', `${frames}`, '-keyint_min', `${frames}`, '-sc_threshold', '0']
}

/** Temporary folder of clips: `remove` it at the end. */
export class ClipFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'millrace-media-'))
  readonly #clips = new Map<string, Promise<Clip>>()
  #files = 0

  /**
   * Runs ffmpeg, once for each set of arguments.
   *
   * @param args  inputs and encoders
   */
  encode(args: readonly string[], sec = 8): Promise<Clip> {
    const key = [...args, `${sec}`].join(' ')
    const known = this.#clips.get(key)
    if (known !== undefined) return known
    const file = join(this.path, `clip-${this.#clips.size}.mpegts`)
    const clip = runFfmpeg([...args, '-t', `${sec}`, '-f', 'mpegts', file])
      .then(() => readFile(file))
      .then((bytes) => ({ bytes, sec }))
    this.#clips.set(key, clip)
    return clip
  }

  /** @returns path of the file */
  async write(bytes: Buffer): Promise<string> {
    const file = join(this.path, `${this.#files++}.mpegts`)
    await writeFile(file, bytes)
    return file
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

export function readFixture(name: string, sec: number): Clip {
  const bytes = readFileSync(new URL(`../../fixtures/${name}.mpegts`, import.meta.url))
  return { bytes, sec }
}

async function runFfmpeg(args: readonly string[]): Promise<void> {
  await run('ffmpeg', ['-v', 'error', '-y', ...args])
}
