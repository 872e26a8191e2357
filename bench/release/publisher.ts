/**
 * ffmpeg, which publishes the demo clip with an audio frame in each PES packet: the clip itself has audio PES packets of
 * 0.3 s, and no part is shorter.
 *
 * @module
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clipOf } from '../support/clip.ts'
import { startProgram, stopProgram } from '../support/programs.ts'

export interface ClipPublisher {
  /** Rejects when ffmpeg ends, whose error is on standard error. */
  readonly failure: Promise<never>
  stop(): Promise<void>
}

export function startPublisher(srtUrl: string, bitsPerSecond: number): ClipPublisher {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-release-'))
  const file = join(folder, 'clip.mpegts')
  writeFileSync(file, clipOf(bitsPerSecond))
  const output = ['-c', 'copy', '-pes_payload_size', '0', '-flush_packets', '1', '-f', 'mpegts']
  const child = startProgram(
    'ffmpeg',
    ['-v', 'error', '-re', '-stream_loop', '-1', '-i', file, ...output, `${srtUrl}&linger=5`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const failure = once(child, 'exit').then(() => {
    throw new Error('ffmpeg ended early')
  })
  failure.catch(() => undefined)
  return {
    failure,
    stop: async () => {
      await stopProgram(child, 'SIGKILL')
      rmSync(folder, { recursive: true })
    },
  }
}
