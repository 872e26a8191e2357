/**
 * What ffprobe and ffmpeg say of a transport stream: somebody else's decoder as the judge.
 *
 * @module
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024

export interface MediaCount {
  readonly videoFrames: number
  readonly videoBytes: number
  readonly audioFrames: number
  readonly audioBytes: number
}

interface Packet {
  readonly codec_type: 'video' | 'audio'
  readonly pts_time?: string
  readonly size: string
  readonly flags: string
}

/** Frames and elementary stream bytes of a file, from the first key frame of its video on. */
export async function countMedia(file: string): Promise<MediaCount> {
  const packets = await probePackets(file)
  const firstKey = packets.findIndex(
    ({ codec_type, flags }) => codec_type === 'video' && flags.startsWith('K'),
  )
  const video = packets.filter(
    ({ codec_type }, index) => codec_type === 'video' && index >= firstKey,
  )
  const audio = packets.filter(({ codec_type }) => codec_type === 'audio')
  return {
    videoFrames: video.length,
    videoBytes: sizeBytes(video),
    audioFrames: audio.length,
    audioBytes: sizeBytes(audio),
  }
}

/** What ffmpeg complains of when it decodes all of a file; empty where it is content. */
export async function decodeErrors(file: string): Promise<string> {
  const { stderr } = await run('ffmpeg', ['-v', 'error', '-i', file, '-f', 'null', '-'], {
    maxBuffer: MAX_OUTPUT_BYTES,
  })
  return stderr
}

async function probePackets(file: string): Promise<Packet[]> {
  const { stdout } = await run(
    'ffprobe',
    [
      ...['-v', 'error', '-of', 'json'],
      ...['-show_entries', 'packet=codec_type,pts_time,size,flags', file],
    ],
    { maxBuffer: MAX_OUTPUT_BYTES },
  )
  return (JSON.parse(stdout) as { packets: Packet[] }).packets
}

function sizeBytes(packets: readonly Packet[]): number {
  return packets.reduce((sum, { size }) => sum + Number(size), 0)
}
