/**
 * Transport stream clips encoded by ffmpeg.
 *
 * @module
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readFrames, type ProbedStream } from '../support/media.ts'
import type { Clip } from '../../mpegts/edit.ts'

const run = promisify(execFile)

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

/** Temporary folder of clips, and what ffmpeg and ffprobe found in them: `remove` it at the end. */
export class ClipFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'millrace-media-'))
  readonly #results = new Map<string, Promise<unknown>>()

  /**
   * Runs ffmpeg, once for each set of arguments.
   *
   * @param args  inputs and encoders
   */
  encode(args: readonly string[], sec = 8): Promise<Clip> {
    const output = ['-t', `${sec}`, '-f', 'mpegts']
    const file = this.#pathOf([...args, ...output].join(' '))
    return this.#once(file, async () => {
      await runFfmpeg([...args, ...output, file])
      return { bytes: await readFile(file), sec }
    })
  }

  /** Writes a file, once for the same bytes. @returns its path */
  write(bytes: Buffer): Promise<string> {
    const file = this.#pathOf(bytes)
    return this.#once(file, async () => {
      await writeFile(file, bytes)
      return file
    })
  }

  /** `readFrames`, once for each file. @param file  of `write` */
  readFrames(file: string): Promise<Map<number, ProbedStream>> {
    return this.#once(`frames ${file}`, () => readFrames(file))
  }

  #pathOf(content: string | Buffer): string {
    return join(this.path, `${createHash('sha256').update(content).digest('hex')}.mpegts`)
  }

  #once<T>(key: string, make: () => Promise<T>): Promise<T> {
    const result = (this.#results.get(key) as Promise<T> | undefined) ?? make()
    this.#results.set(key, result)
    return result
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

export function readFixture(name: string, sec: number): Clip {
  const bytes = readFileSync(new URL(`../../../fixtures/${name}.mpegts`, import.meta.url))
  return { bytes, sec }
}

async function runFfmpeg(args: readonly string[]): Promise<void> {
  await run('ffmpeg', ['-v', 'error', '-y', ...args])
}
