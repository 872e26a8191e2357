/**
 * Tracks that ffmpeg encodes, written as CMAF: ffprobe counts and times every sample, ffmpeg decodes them to the same
 * frames as the transport stream, without a warning.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { AudioSource } from '../../../src/mp4/audio-samples.ts'
import { timescaleOf } from '../../../src/mp4/init-segment.ts'
import {
  codecStringOf,
  fragment,
  readAudio,
  readVideo,
  unitsOfKind,
} from '../../mp4/fragmented-track.ts'
import { readDecoded, readFrames } from '../support/media.ts'
import { requireTool } from '../support/tools.ts'

const run = promisify(execFile)

const VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-t', '2']
const AUDIO = ['-f', 'lavfi', '-i', 'sine=sample_rate=48000', '-t', '2']
const words = (text: string) => text.split(' ')

const HDR = '-color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc'

const VIDEO_CASES = [
  ['h264', 'H.264 with B-frames', '-c:v libx264 -preset veryfast -g 30 -bf 3', 'avc1.'],
  ['h264', 'H.264, 10 bit', '-pix_fmt yuv420p10le -c:v libx264 -preset ultrafast', 'avc1.6e'],
  ['h264', 'H.264, anamorphic', '-aspect 4:3 -c:v libx264 -preset ultrafast', 'avc1.'],
  ['h264', 'H.264, interlaced', '-c:v libx264 -preset ultrafast -flags +ildct+ilme', 'avc1.'],
  ['h264', 'H.264 at 29.97 fps', '-r 30000/1001 -c:v libx264 -preset veryfast', 'avc1.'],
  ['h265', 'H.265', '-c:v libx265 -preset ultrafast -x265-params log-level=none', 'hvc1.1'],
  [
    'h265',
    'H.265, 10 bit HDR',
    `-pix_fmt yuv420p10le ${HDR} -c:v libx265 -preset ultrafast -x265-params log-level=none`,
    'hvc1.2',
  ],
] as const

const OPUS = {
  codec: 'opus',
  format: {
    codec: 'opus',
    parameters: { codecString: 'opus', sampleRate: 48_000, channels: 1 },
    timescale: 48_000,
    preSkip: 0,
    inputSampleRate: 48_000,
  },
} as const

const AUDIO_CASES: readonly (readonly [AudioSource, string, string, string])[] = [
  [{ codec: 'aac' }, 'AAC', '-c:a aac', 'mp4a.40.2'],
  [{ codec: 'aac' }, 'AAC 5.1 at 44.1 kHz', '-ar 44100 -ac 6 -c:a aac', 'mp4a.40.2'],
  [{ codec: 'aac' }, 'AAC in LATM', '-c:a aac -mpegts_flags latm', 'mp4a.40.2'],
  [{ codec: 'mp3' }, 'MP3', '-c:a libmp3lame', 'mp4a.40.34'],
  [{ codec: 'mp3' }, 'MP3 at 22.05 kHz', '-ar 22050 -c:a libmp3lame', 'mp4a.40.34'],
  [{ codec: 'ac3' }, 'AC-3 5.1', '-ac 6 -c:a ac3', 'ac-3'],
  [{ codec: 'eac3' }, 'E-AC-3 5.1', '-ac 6 -c:a eac3', 'ec-3'],
  [OPUS, 'Opus', '-c:a libopus', 'opus'],
]

/** Encodes a transport stream. */
async function encode(folder: string, input: readonly string[], options: string): Promise<string> {
  const file = join(folder, 'in.ts')
  await run('ffmpeg', ['-v', 'error', ...input, ...words(options), '-f', 'mpegts', file])
  return file
}

async function compare(
  t: Test,
  { source, file, timescale }: { source: string; file: string; timescale: number },
) {
  const [expected] = [...(await readFrames(source)).values()]
  const [found] = [...(await readFrames(file)).values()]
  const times = (
    frames: readonly (readonly [number | undefined, number | undefined, ...unknown[]])[],
  ) => frames.map(([pts, dts]) => [pts, dts])
  if (timescale === 90_000) t.strictSame(times(found!.frames), times(expected!.frames))
  else {
    t.equal(found!.frames.length, expected!.frames.length)
    const apart = found!.frames.map(([pts], index) =>
      Math.abs((pts! * 90_000) / timescale - expected!.frames[index]![0]!),
    )
    t.ok(Math.max(...apart) <= 2, `times are ${Math.max(...apart)} ticks apart`)
  }
  const { stderr } = await run('ffmpeg', ['-v', 'warning', '-i', file, '-f', 'null', '-'])
  t.equal(stderr, '')
  t.strictSame(await readDecoded(file), await readDecoded(source))
}

for (const [codec, name, options, codecs] of VIDEO_CASES) {
  t.test(`${name} as CMAF is what ffmpeg encoded`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const folder = t.testdir()
    const source = await encode(folder, VIDEO, options)
    const samples = readVideo(unitsOfKind(readFileSync(source), 'video'), codec)
    const file = join(folder, 'out.mp4')
    writeFileSync(file, fragment(samples).file)
    t.ok(codecStringOf(samples[0]!.format).startsWith(codecs), codecStringOf(samples[0]!.format))
    await compare(t, { source, file, timescale: timescaleOf(samples[0]!.format) })
    t.strictSame(await describe(file), await describe(source))
  })
}

for (const [audio, name, options, codecs] of AUDIO_CASES) {
  t.test(`${name} as CMAF is what ffmpeg encoded`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const folder = t.testdir()
    const source = await encode(folder, AUDIO, options)
    const samples = readAudio(unitsOfKind(readFileSync(source), 'audio'), audio)
    const file = join(folder, 'out.mp4')
    writeFileSync(file, fragment(samples).file)
    t.equal(codecStringOf(samples[0]!.format), codecs)
    await compare(t, { source, file, timescale: timescaleOf(samples[0]!.format) })
  })
}

/** Format of the video as ffprobe sees it. */
async function describe(file: string): Promise<unknown> {
  const fields = 'profile,level,width,height,sample_aspect_ratio,pix_fmt,color_space,color_transfer'
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-of', 'json', '-show_entries', `stream=${fields}`, file],
  ])
  return (JSON.parse(stdout) as { streams: unknown[] }).streams[0]
}
