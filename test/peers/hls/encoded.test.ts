/**
 * Real encodes through demuxer, packager and playlist, judged by ffprobe, ffmpeg, mux.js and m3u8-parser.
 */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import inspector from 'mux.js/lib/tools/ts-inspector.js'
import t, { type Test } from 'tap'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import type { Segment } from '../../../src/hls/store/segment.ts'
import { Packager, type PackagerOutput } from '../../../src/hls/packager.ts'
import { demux } from '../../mpegts/demux.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { StreamJudge } from '../../support/stream-judge.ts'
import { requireTool } from '../support/tools.ts'
import { continuityFaults, readPackets, readPat } from '../../support/ts-reader.ts'

const run = promisify(execFile)

const SECONDS = 9
const TEST_VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=30']
const NTSC_TEST_VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=30000/1001']
const TONE = ['-f', 'lavfi', '-i', 'sine=f=440:r=48000']
const AAC = ['-c:a', 'aac', '-b:a', '96k']
const GOP = (frames: number) => [
  '-g',
  `${frames}`,
  '-keyint_min',
  `${frames}`,
  '-sc_threshold',
  '0',
]
const X264 = ['-c:v', 'libx264', '-preset', 'veryfast', ...GOP(60)]
const X265 = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params']

interface Case {
  readonly name: string
  readonly encode: readonly string[]
  readonly maxSegmentSec?: number
  /** Segment durations, rounded to 10 ms. */
  readonly durations: readonly number[]
  readonly targetSec: number
  /** Whether every segment decodes without the one before. */
  readonly independent: boolean
  readonly codecs: string
}

const CASES: readonly Case[] = [
  {
    name: 'H.264 and AAC',
    encode: [...TEST_VIDEO, ...TONE, ...X264, ...AAC],
    durations: [2, 2, 2, 2, 1],
    targetSec: 2,
    independent: true,
    codecs: 'avc1.64000d,mp4a.40.2',
  },
  {
    name: 'H.264 of 29.97 Hz and MP2',
    encode: [...NTSC_TEST_VIDEO, ...TONE, ...X264, '-c:a', 'mp2'],
    durations: [2, 2, 2, 2, 1],
    targetSec: 2,
    independent: true,
    codecs: 'avc1.64000d,mp4a.40.33',
  },
  {
    name: 'H.264 alone, past the wrap of 33 bits',
    encode: [...TEST_VIDEO, ...X264, '-output_ts_offset', '95440'],
    durations: [2, 2, 2, 2, 1],
    targetSec: 2,
    independent: true,
    codecs: 'avc1.64000d',
  },
  {
    name: 'H.264 with open GOPs and MP3',
    encode: [...TEST_VIDEO, ...TONE, ...X264, '-x264-params', 'open-gop=1', '-c:a', 'libmp3lame'],
    durations: [2, 2, 2, 2, 1],
    targetSec: 2,
    independent: false,
    codecs: 'avc1.64000d,mp4a.40.34',
  },
  {
    name: 'H.264 with a GOP that outlasts the greatest target',
    encode: [...TEST_VIDEO, ...TONE, ...X264, ...GOP(600), ...AAC],
    maxSegmentSec: 4,
    durations: [4.47, 4.47, 0.07],
    targetSec: 4,
    independent: false,
    codecs: 'avc1.64000d,mp4a.40.2',
  },
  {
    name: 'H.265 and AAC',
    encode: [...TEST_VIDEO, ...TONE, ...X265, 'keyint=60:min-keyint=60:open-gop=0', ...AAC],
    durations: [2, 2, 2, 2, 1],
    targetSec: 2,
    independent: true,
    codecs: 'hvc1.1.6.L60.90,mp4a.40.2',
  },
  {
    name: 'H.265 with open GOPs',
    encode: [...TEST_VIDEO, ...X265, 'keyint=60:min-keyint=60:open-gop=1'],
    durations: [2, 2, 2, 2, 1],
    targetSec: 2,
    independent: false,
    codecs: 'hvc1.1.6.L60.90',
  },
  {
    name: 'AAC alone',
    encode: [...TONE, ...AAC],
    durations: [],
    targetSec: 2,
    independent: true,
    codecs: 'mp4a.40.2',
  },
]

for (const { name, encode, ...expected } of CASES) {
  t.test(name, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const folder = t.testdir()
    const source = join(folder, 'source.mpegts')
    const result = join(folder, 'result.mpegts')
    await run('ffmpeg', ['-v', 'error', ...encode, '-t', `${SECONDS}`, '-f', 'mpegts', source])
    const { segments, targetSec, multivariant } = publish(
      t,
      await readFile(source),
      expected.maxSegmentSec ?? 10,
    )

    await writeFile(result, Buffer.concat(segments.map(({ bytes }) => bytes)))
    t.same(await probe(result), await probe(source), 'ffprobe sees the packets of the source')
    t.equal(await decodeErrors(result), '', 'ffmpeg decodes the segments in sequence in silence')

    if (expected.durations.length > 0) {
      t.same(
        segments.map(({ durationSec }) => Math.round(durationSec * 100) / 100),
        expected.durations,
      )
    }
    const lastsSec = segments.reduce((sum, { durationSec }) => sum + durationSec, 0)
    t.ok(Math.abs(lastsSec - SECONDS) < 0.1, `EXTINF adds up: ${lastsSec} s`)
    t.equal(targetSec, expected.targetSec)
    t.match(multivariant, `CODECS="${expected.codecs}"`)

    if (expected.codecs.startsWith('avc1')) inspect(t, segments, expected.independent)
    t.equal(
      segments.every(({ independent }) => independent),
      expected.independent,
    )
    if (!expected.independent) return
    for (const { bytes, uri } of segments) {
      await writeFile(result, bytes)
      t.equal(await decodeErrors(result), '', `${uri} decodes alone`)
    }
  })
}

/** Runs a transport stream through the pipeline; checks every segment's shape and every playlist version. */
function publish(t: Test, source: Buffer, maxSegmentSec: number) {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec })
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments: 3 })
  const judge = new StreamJudge({ watchedFromStart: true })
  const segments: Segment[] = []
  let targetSec: number | undefined
  const checkPlaylist = () => {
    const text = presentation.files.get('playlist.m3u8')?.chunks.join('')
    t.equal(text === undefined, targetSec === undefined, 'the playlist appears with its target')
    if (text === undefined) return
    t.same(
      [...judge.playlist('playlist.m3u8', text), ...parseM3u8(text).complaints],
      [],
      'playlist in order',
    )
  }
  const take = (outputs: readonly PackagerOutput[]) => {
    for (const output of outputs) {
      if (output.type === 'target') {
        targetSec = output.targetSec
        presentation.setTarget(targetSec)
      } else if (output.type === 'segment') {
        segments.push(output.segment)
        presentation.append(output.segment, segments.length * 2000)
      } else continue
      checkPlaylist()
    }
  }
  for (const output of demux(source)) take(packager.push(output, 1e12))
  take(packager.end())
  presentation.end()
  checkPlaylist()

  const packets = segments.map(({ bytes }) => readPackets(bytes))
  t.same(continuityFaults(packets.flat()), [])
  for (const [pat, pmt, first] of packets) {
    t.equal(pat!.pid, 0, 'PAT first')
    t.equal(readPat(pat!)[0]!.pmtPid, pmt!.pid, 'then PMT')
    t.ok(first!.unitStart, 'then a PES packet')
  }
  return {
    segments,
    targetSec,
    multivariant: presentation.files.get('master.m3u8')!.chunks.join(''),
  }
}

/** mux.js, the demuxer of video.js, reads each segment by itself; the only key frame it knows is IDR. */
function inspect(t: Test, segments: readonly Segment[], startsWithIdr: boolean): void {
  for (const { bytes, uri } of segments) {
    const { video = [], firstKeyFrame } = inspector.inspect(bytes) ?? {}
    t.equal(video.length, 2, `mux.js finds first and last frame of ${uri}`)
    if (startsWithIdr) t.equal(firstKeyFrame?.dts, video[0]?.dts, 'the first is a key frame')
  }
}

/** Every packet of a file, with its timestamps and a hash of its payload: first the video's, then the audio's. */
async function probe(file: string): Promise<unknown[]> {
  const entries = 'packet=codec_type,pts,dts,size,data_hash'
  const { stdout } = await run(
    'ffprobe',
    ['-v', 'error', '-show_data_hash', 'MD5', '-of', 'json', '-show_entries', entries, file],
    { maxBuffer: 64 * 1024 * 1024 },
  )
  const { packets } = JSON.parse(stdout) as { packets: { codec_type: string }[] }
  return ['video', 'audio'].flatMap((type) =>
    packets.filter((packet) => packet.codec_type === type),
  )
}

async function decodeErrors(file: string): Promise<string> {
  const { stderr } = await run('ffmpeg', ['-v', 'error', '-i', file, '-f', 'null', '-'])
  return stderr
}
