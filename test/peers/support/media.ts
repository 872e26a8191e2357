/**
 * ffprobe and ffmpeg as independent judges of transport streams.
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

/** A frame read by ffprobe: times, size, and a hash of its bytes. */
export type Frame = readonly [
  pts: number | undefined,
  dts: number | undefined,
  size: string,
  hash: string,
]

/** The frames of one elementary stream. */
export interface ProbedStream {
  readonly kind: string
  readonly frames: Frame[]
}

/** Reads every frame of a file, by PID. */
export async function readFrames(file: string): Promise<Map<number, ProbedStream>> {
  const { stdout } = await run(
    'ffprobe',
    [
      ...['-v', 'error', '-of', 'json', '-show_data_hash', 'MD5', '-show_entries'],
      ...['stream=index,id,codec_type:packet=stream_index,pts,dts,size,data_hash', file],
    ],
    { maxBuffer: MAX_OUTPUT_BYTES },
  )
  const { streams = [], packets = [] } = JSON.parse(stdout) as {
    readonly streams?: readonly { index: number; id: string; codec_type: string }[]
    readonly packets?: readonly {
      stream_index: number
      pts?: number
      dts?: number
      size: string
      data_hash: string
    }[]
  }
  return new Map(
    streams.map(({ index, id, codec_type: kind }) => {
      const own = packets.filter(({ stream_index }) => stream_index === index)
      const frames = own.map(({ pts, dts, size, data_hash }): Frame => [pts, dts, size, data_hash])
      return [Number(id), { kind, frames }]
    }),
  )
}

/**
 * Hashes every decoded video and audio frame, without its time.
 *
 * @param file  path or URL
 * @param options  further options of ffmpeg for the input and the output
 */
export async function readDecoded(
  file: string,
  { input = [], output = [] }: { input?: readonly string[]; output?: readonly string[] } = {},
): Promise<{ video: string[]; audio: string[] }> {
  const args = ['-v', 'error', ...input, '-i', file, ...output, '-f', 'framemd5', '-']
  const { stdout } = await run('ffmpeg', args, { maxBuffer: MAX_OUTPUT_BYTES })
  const lines = stdout.split('\n')
  const media = new Map(
    lines.flatMap((line) => {
      const [, index, type] = /^#media_type (\d+): (\w+)/.exec(line) ?? []
      return index === undefined || type === undefined ? [] : [[index, type] as const]
    }),
  )
  const hashes = { video: new Array<string>(), audio: new Array<string>() }
  for (const line of lines) {
    if (line.startsWith('#') || line === '') continue
    const [index = '', , , , , hash = ''] = line.split(',').map((field) => field.trim())
    const type = media.get(index)
    if (type === 'video' || type === 'audio') hashes[type].push(hash)
  }
  return hashes
}

/** Counts frames and elementary stream bytes of a file, from the first video key frame on. */
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

/** @returns errors of ffmpeg when it decodes each file alone */
export async function decodeErrors(...files: string[]): Promise<string> {
  return decode('error', files)
}

/** @returns warnings and errors of ffmpeg when it decodes each file alone */
export async function decodeWarnings(...files: string[]): Promise<string> {
  return decode('warning', files)
}

async function decode(level: string, files: readonly string[]): Promise<string> {
  const inputs = files.flatMap((file) => ['-i', file])
  const maps = files.flatMap((_, index) => ['-map', `${index}:v?`, '-map', `${index}:a?`])
  const args = ['-v', level, ...inputs, ...maps, '-f', 'null', '-']
  return new Promise((resolve) => {
    execFile('ffmpeg', args, { maxBuffer: MAX_OUTPUT_BYTES }, (error, _, stderr) =>
      resolve(error === null ? stderr : `${error.message}\n${stderr}`),
    )
  })
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
