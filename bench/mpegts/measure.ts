/**
 * CPU cost from a transport stream to segments and playlists: Millrace on one core, beside ffmpeg with the same file.
 *
 * @module
 */
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readDatagrams } from '../../src/cli/publisher/paced-file.ts'
import { clipOf } from '../support/clip.ts'
import { isInstalled, startProgram } from '../support/programs.ts'
import { startWorker } from '../support/worker.ts'
import type { Footprint, PipelineAnswers, PipelineTask } from './pipeline.ts'

/** Folder in memory, so that no disk is measured. */
const SCRATCH = `/dev/shm/millrace-bench-mpegts-${process.pid}`

/** Input of about one second of CPU. */
const FILE_BYTES = 200_000_000

export interface MpegtsResult extends Footprint {
  readonly bitsPerSecond: number
  /** Bits per CPU second; NaN when ffmpeg is not installed. */
  readonly demuxerBps: number
  readonly streamBps: number
  readonly ffmpegBps: number
}

export async function measureMpegts(bitsPerSecond: number, rounds: number): Promise<MpegtsResult> {
  mkdirSync(SCRATCH)
  try {
    const file = join(SCRATCH, 'stream.mpegts')
    const bytes = await repeatClip(clipOf(bitsPerSecond))
    writeFileSync(file, bytes)
    const worker = await startWorker<PipelineAnswers>(new URL('pipeline.js', import.meta.url), {
      file,
    } satisfies PipelineTask)
    const costs = { demux: Infinity, stream: Infinity, ffmpeg: Infinity }
    // They take turns, and the best round of each counts, since the first ones include compilation.
    for (let round = 0; round < rounds; round++) {
      costs.demux = Math.min(costs.demux, await worker.ask('demux'))
      costs.stream = Math.min(costs.stream, await worker.ask('stream'))
      costs.ffmpeg = Math.min(costs.ffmpeg, await segmentWithFfmpeg(file))
    }
    const footprint = await worker.ask('footprint')
    await worker.stop()
    const bits = bytes.length * 8
    return {
      bitsPerSecond,
      demuxerBps: bits / costs.demux,
      streamBps: bits / costs.stream,
      ffmpegBps: bits / costs.ffmpeg,
      ...footprint,
    }
  } finally {
    rmSync(SCRATCH, { recursive: true })
  }
}

/** Repeats the clip on one timeline. */
async function repeatClip(clip: Buffer): Promise<Buffer> {
  const payloads: Buffer[] = []
  let sizeBytes = 0
  for await (const datagrams of readDatagrams(clip, { loop: true })) {
    for (const { payload } of datagrams) {
      payloads.push(payload)
      sizeBytes += payload.length
    }
    if (sizeBytes >= FILE_BYTES) break
  }
  return Buffer.concat(payloads)
}

/** @returns CPU seconds that ffmpeg reports */
async function segmentWithFfmpeg(file: string): Promise<number> {
  if (!isInstalled('ffmpeg')) return NaN
  const hls = '-f hls -hls_time 2 -hls_list_size 6 -hls_flags delete_segments'
  const ffmpeg = startProgram(
    'ffmpeg',
    [
      ...['-y', '-benchmark', '-i', file, '-map', '0', '-c', 'copy', ...hls.split(' ')],
      join(SCRATCH, 'ffmpeg.m3u8'),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  ffmpeg.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await once(ffmpeg, 'close')
  const [, user, system] = /bench: utime=([\d.]+)s stime=([\d.]+)s/.exec(said) ?? []
  return Number(user) + Number(system)
}
