/**
 * Three video and two audio tracks of one ffmpeg command through a stream, as viewers of each rendition see them.
 */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { decodeErrors } from '../peers/support/media.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { requireTool } from '../peers/support/tools.ts'
import { continuityFaults, readPackets } from '../support/ts-reader.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

const run = promisify(execFile)

const SECONDS = 12
const PAYLOAD_BYTES = 1316

const ENCODE = [
  ...['-f', 'lavfi', '-i', 'testsrc2=s=640x360:r=30'],
  ...['-f', 'lavfi', '-i', 'sine=f=440:r=48000', '-f', 'lavfi', '-i', 'sine=f=880:r=48000'],
  ...['-map', '0:v', '-map', '0:v', '-map', '0:v', '-map', '1:a', '-map', '2:a'],
  ...['-c:v', 'libx264', '-preset', 'veryfast', '-g', '60', '-keyint_min', '60'],
  ...['-sc_threshold', '0', '-s:v:0', '640x360', '-s:v:1', '480x270', '-s:v:2', '320x180'],
  ...['-c:a', 'aac', '-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
  ...['-t', `${SECONDS}`, '-f', 'mpegts'],
]

/** Playlist -> streams of the source that it carries, in ffprobe's words. */
const CARRIED = {
  'playlist.m3u8': ['v:0', 'a:0'],
  'video-2.m3u8': ['v:1', 'a:0'],
  'video-3.m3u8': ['v:2', 'a:0'],
  'audio-2.m3u8': ['a:1'],
} as const

type Uri = keyof typeof CARRIED
const URIS = Object.keys(CARRIED) as Uri[]

t.test('three variants and two languages, aligned, with every byte of the source', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
  const source = join(t.testdir(), 'source.mpegts')
  await run('ffmpeg', ['-v', 'error', ...ENCODE, source])
  const { stream, segments } = publish(t, await readFile(source))
  t.same(stream.report().warnings, [])

  const text = stream.files.get('master.m3u8')!.chunks.join('')
  const { manifest, complaints } = parseM3u8(text)
  t.same(complaints, [])
  t.match(
    manifest.playlists?.map(({ uri, attributes }) => ({ uri, ...attributes })),
    [
      { uri: 'playlist.m3u8', RESOLUTION: { width: 640, height: 360 } },
      { uri: 'video-2.m3u8', RESOLUTION: { width: 480, height: 270 } },
      { uri: 'video-3.m3u8', RESOLUTION: { width: 320, height: 180 } },
    ].map((variant) => ({
      ...{ ...variant, CODECS: /^avc1\.[0-9a-f]{6},mp4a\.40\.2$/, AUDIO: 'audio' },
      ...{ 'FRAME-RATE': 30, 'CLOSED-CAPTIONS': undefined },
    })),
  )
  t.match(text, /NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="1"\n/)
  t.match(text, /NAME="French",LANGUAGE="fr",DEFAULT=NO,.*URI="audio-2.m3u8"\n/)
  for (const { uri, attributes } of manifest.playlists!) {
    const most = (name: Uri) =>
      Math.max(...segments.get(name)!.map(({ bytes }) => (bytes.length * 8) / 2))
    t.ok(Number(attributes['BANDWIDTH']) >= most(uri as Uri) + most('audio-2.m3u8'), uri)
  }

  const firstFrames = new Map<Uri, string[]>()
  for (const uri of URIS) {
    const own = segments.get(uri)!
    t.same(continuityFaults(own.flatMap(({ bytes }) => readPackets(bytes))), [])
    const all = join(t.testdirName, `all-${uri}.mpegts`)
    await writeFile(all, Buffer.concat(own.map(({ bytes }) => bytes)))
    for (const [index, name] of CARRIED[uri].entries()) {
      const kind = name.replace(/\d/, '0')
      t.same(await probe(all, kind), await probe(source, name), `${uri}: stream ${index}`)
    }
    for (const { uri: segmentUri, bytes } of own) {
      const alone = join(t.testdirName, 'alone.mpegts')
      await writeFile(alone, bytes)
      t.equal(await decodeErrors(alone), '', `${segmentUri} decodes alone`)
      const [first] = uri.startsWith('audio') ? [] : await probe(alone, 'v:0')
      firstFrames.set(uri, [...(firstFrames.get(uri) ?? []), `${first?.pts} ${first?.flags}`])
    }
  }
  t.ok(firstFrames.get('playlist.m3u8')!.every((frame) => frame.endsWith('K_')))
  for (const uri of ['video-2.m3u8', 'video-3.m3u8'] as const) {
    t.same(
      firstFrames.get(uri),
      firstFrames.get('playlist.m3u8'),
      `${uri} starts at the same times`,
    )
  }
})

t.test(
  'two languages through reconnects: the URLs stay, and all playlists keep step',
  async (t) => {
    const clip = await readFile(new URL('../../fixtures/h264-two-audio.mpegts', import.meta.url))
    const { stream } = publish(t, clip, { times: 12, uris: ['playlist.m3u8', 'audio-2.m3u8'] })
    t.match(stream.report().totals, { publishers: 12, segments: 24 })
    t.match(stream.files.get('audio-2.m3u8')!.chunks.join(''), /e-a2-11\.ts\n$/)
    stream.stop('api')
    t.match(stream.files.get('audio-2.m3u8')!.chunks.join(''), /ENDLIST\n$/)
  },
)

/** Publishes a clip in SRT payloads, and checks every version of every playlist. */
function publish(t: Test, clip: Buffer, { times = 1, uris = URIS } = {}) {
  let nowUs = 0
  const stream = new LiveStream('studio', {
    clock: { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 3 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  const segments = new Map<string, { uri: string; bytes: Buffer }[]>()
  stream.on('segment', ({ rendition, uri, bytes }) => {
    const playlist = rendition === 'main' ? 'playlist.m3u8' : `${rendition}.m3u8`
    segments.set(playlist, [...(segments.get(playlist) ?? []), { uri, bytes }])
  })
  stream.on('live', () => t.ok(stream.files.get('master.m3u8'), 'live: everything can be played'))
  const judge = new StreamJudge()
  const versions = new Map<Uri, string>()
  const dates = new Map<number, string>()
  const look = () => {
    const multivariant = stream.files.get('master.m3u8')?.chunks.join('')
    t.same(multivariant === undefined ? [] : judge.multivariant(multivariant), [])
    for (const uri of uris) {
      const file = stream.files.get(uri)
      if (file === undefined || file.version === versions.get(uri)) continue
      versions.set(uri, file.version)
      const text = file.chunks.join('')
      const { manifest, complaints } = parseM3u8(text)
      const broken = [...judge.playlist(uri, text), ...complaints]
      if (broken.length > 0) t.fail(`${uri}: ${broken.join()}`)
      let discontinuities = manifest.discontinuitySequence!
      for (const [index, segment] of manifest.segments!.entries()) {
        if (segment.discontinuity === true) discontinuities++
        if (stream.files.get(segment.uri) === undefined) t.fail(`${segment.uri} is listed and gone`)
        // Rules 13 and 62: a number means the same time in all of them.
        const number = manifest.mediaSequence! + index
        const date = `${discontinuities} ${segment.programDateTime} ${segment.duration} ${manifest.targetDuration}`
        if (date !== (dates.get(number) ?? date)) t.fail(`${segment.uri}: ${date}`)
        dates.set(number, date)
      }
    }
  }
  for (let time = 0; time < times; time++) {
    const encoder = { lastPacketUs: 0, report: () => PUBLISHER_REPORT, close: () => {} }
    const publication = stream.publish(encoder)
    for (let at = 0; at < clip.length; at += PAYLOAD_BYTES) {
      nowUs += (SECONDS * 1e6 * PAYLOAD_BYTES) / clip.length
      publication.push(clip.subarray(at, at + PAYLOAD_BYTES))
      look()
    }
    publication.end('shutdown')
    look()
  }
  t.ok(dates.size > 0)
  return { stream, segments }
}

interface ProbedPacket {
  readonly pts: number
  readonly flags: string
  readonly data_hash: string
}

/** Every packet of one stream, with its timestamps and a hash of its payload. */
async function probe(file: string, stream: string): Promise<ProbedPacket[]> {
  const { stdout } = await run(
    'ffprobe',
    [
      ...['-v', 'error', '-of', 'json', '-show_data_hash', 'MD5', '-select_streams', stream],
      ...['-show_entries', 'packet=pts,dts,size,flags,data_hash', file],
    ],
    { maxBuffer: 64 * 1024 * 1024 },
  )
  return (JSON.parse(stdout) as { packets: ProbedPacket[] }).packets
}
