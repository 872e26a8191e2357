/**
 * Frames of a file as ffprobe reads them, without edit lists, which HLS players ignore.
 *
 * @module
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface ProbedTrack {
  /** PID, or track_ID. */
  readonly id: number
  readonly kind: 'video' | 'audio' | 'data'
  readonly width?: number
  readonly height?: number
  readonly frames: number
  readonly keyFrames: number
  /** Seconds: smallest and largest PTS, usual distance of frames, and DTS of the first frame. */
  readonly startSec: number
  readonly lastSec: number
  readonly frameSec: number
  readonly firstDecodeSec: number
}

interface Probed {
  readonly streams: readonly {
    index: number
    id: string
    codec_type: 'video' | 'audio' | 'data'
    time_base: string
    width?: number
    height?: number
  }[]
  readonly packets: readonly {
    stream_index: number
    pts: number
    dts: number
    flags: string
  }[]
}

export async function probe(file: string): Promise<ProbedTrack[]> {
  const isMp4 = file.endsWith('.mp4')
  const { stdout } = await run(
    'ffprobe',
    [
      ...['-v', 'error', '-of', 'json', ...(isMp4 ? ['-ignore_editlist', '1'] : [])],
      ...['-show_entries', 'stream=index,id,codec_type,time_base,width,height'],
      ...['-show_entries', 'packet=stream_index,pts,dts,flags', file],
    ],
    { maxBuffer: 64 * 1024 * 1024 },
  )
  const { streams, packets } = JSON.parse(stdout) as Probed
  return streams.map(({ index, id, codec_type: kind, time_base, width, height }) => {
    const own = packets.filter(({ stream_index }) => stream_index === index)
    const sec = (ticks: number) => ticks / Number(time_base.replace('1/', ''))
    return {
      ...{ id: Number(id), kind, frames: own.length },
      ...(kind === 'video' && { width, height }),
      keyFrames: own.filter(({ flags }) => flags.startsWith('K')).length,
      startSec: sec(Math.min(...own.map(({ pts }) => pts))),
      lastSec: sec(Math.max(...own.map(({ pts }) => pts))),
      frameSec: sec((own[1]?.dts ?? Number.NaN) - (own[0]?.dts ?? Number.NaN)),
      firstDecodeSec: sec(own[0]?.dts ?? Number.NaN),
    }
  })
}
