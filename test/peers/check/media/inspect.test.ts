/**
 * Facts about media files: they are those of ffprobe, codecs are those of the bitstream.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { inspectMedia } from '../../../../src/check/media/inspect.ts'
import { secondsAfter, type MediaFacts } from '../../../../src/check/media/media-facts.ts'
import { requireTool } from '../../support/tools.ts'
import { probe } from './probe.ts'

const run = promisify(execFile)
const PLAIN = { encryption: undefined, init: undefined }

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../../../fixtures/${name}.mpegts`, import.meta.url))
}

/** Compares frames, key frames, size and times, to half a tick of 90 kHz. */
async function compare(t: Test, file: string, facts: MediaFacts): Promise<void> {
  const probed = await probe(file)
  t.ok(probed.length > 0)
  const tracks = facts.tracks.filter(({ kind }) => kind !== 'data')
  t.equal(tracks.length, probed.length)
  for (const expected of probed) {
    const { id } = expected
    const found = tracks.find((track) => track.id === id)!
    const { startSec, lastSec, frameSec, firstDecodeSec, ...exact } = expected
    t.match(found, exact, `track ${id}`)
    const times = [
      [found.startSec, startSec],
      [found.firstDecodeSec, firstDecodeSec],
    ] as const
    for (const [a, b] of times) {
      // ffprobe rounds times to ticks; those before a wrap are negative.
      t.ok(Math.abs(secondsAfter('mpegts', a, b)) < 2 / 90_000, `track ${id}: ${a} is ${b}`)
    }
    // The last audio frame of a file may be shorter: the encoder's padding is left out.
    const lastFrameSec = secondsAfter('mpegts', found.endSec, lastSec)
    const isWhole = Math.abs(lastFrameSec - frameSec) < 2 / 90_000
    const isShorter = facts.container === 'fmp4' && lastFrameSec > 0 && lastFrameSec < frameSec
    t.ok(isWhole || isShorter, `track ${id}: the last frame lasts ${lastFrameSec} s`)
  }
}

// ffprobe calls the recovery points of intra refresh key frames, hence that clip is not compared.
for (const name of [
  ...['h264-aac', 'h264-open-gop', 'h264-bounded-pes', 'h264-mp2-nit', 'h264-aac-wrap'],
  ...['h265-aac', 'h264-two-audio', 'mp3', 'ac3-dvb', 'eac3', 'demo', 'two-languages'],
]) {
  t.test(`${name}: tracks, frames, times and key frames are those of ffprobe`, async (t) => {
    if (!requireTool(t, 'ffprobe')) return
    const facts = inspectMedia(await readFile(fixture(name)), PLAIN)
    t.equal(facts.container, 'mpegts')
    await compare(t, fixture(name), facts)
  })
}

const VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=30']
const AUDIO = ['-f', 'lavfi', '-i', 'sine=sample_rate=48000']
const X264 = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '15']
const AAC = ['-c:a', 'aac', '-b:a', '64k']
const FRAGMENTED = ['-movflags', '+frag_keyframe+delay_moov+default_base_moof', '-f', 'mp4']

const MP4: Readonly<Record<string, { args: readonly string[]; codecs: readonly RegExp[] }>> = {
  'H.264 with B-frames, AAC': {
    args: [...VIDEO, ...AUDIO, ...X264, '-bf', '2', ...AAC],
    codecs: [/^avc1\.64000b$/i, /^mp4a\.40\.2$/],
  },
  'H.265 as hvc1, E-AC-3': {
    args: [
      ...[...VIDEO, ...AUDIO, '-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hvc1'],
      ...['-x265-params', 'keyint=15:log-level=none', '-c:a', 'eac3'],
    ],
    codecs: [/^hvc1\.1\.6\.L30\.90$/, /^ec-3$/],
  },
  'H.265 as hev1, AC-3': {
    args: [
      ...[...VIDEO, ...AUDIO, '-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hev1'],
      ...['-x265-params', 'keyint=15:log-level=none', '-c:a', 'ac3'],
    ],
    codecs: [/^hev1\.1\.6\.L30\.90$/, /^ac-3$/],
  },
  'AV1, Opus': {
    args: [
      ...[...VIDEO, ...AUDIO, '-c:v', 'libaom-av1', '-cpu-used', '8', '-g', '15'],
      ...['-c:a', 'libopus'],
    ],
    codecs: [/^av01\.0\.\d\dM\.08$/, /^opus$/],
  },
  '5.1 AAC at 44.1 kHz, no video': {
    args: [...['-f', 'lavfi', '-i', 'anoisesrc'], '-ar', '44100', '-ac', '6', ...AAC],
    codecs: [/^mp4a\.40\.2$/],
  },
  'MP3, no video': { args: [...AUDIO, '-c:a', 'libmp3lame'], codecs: [/^mp4a\.40\.34$/] },
}

for (const [title, { args, codecs }] of Object.entries(MP4)) {
  t.test(`fMP4, ${title}: tracks, frames, times and key frames are those of ffprobe`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const file = join(t.testdir(), 'clip.mp4')
    await run('ffmpeg', ['-v', 'error', ...args, '-t', '1.5', ...FRAGMENTED, file])
    const facts = inspectMedia(await readFile(file), PLAIN)
    t.same([facts.container, facts.faults], ['fmp4', []])
    await compare(t, file, facts)
    for (const [index, codec] of codecs.entries()) t.match(facts.tracks[index]!.codec, codec)
  })
}

t.test('reads an fMP4 segment with the init segment of EXT-X-MAP', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const folder = t.testdir()
  const args = [...VIDEO, ...AUDIO, ...X264, ...AAC, '-t', '2']
  const hls = ['-f', 'hls', '-hls_time', '1', '-hls_segment_type', 'fmp4', 'index.m3u8']
  await run('ffmpeg', ['-v', 'error', ...args, ...hls], { cwd: folder })
  const init = await readFile(join(folder, 'init.mp4'))
  const first = inspectMedia(await readFile(join(folder, 'index0.m4s')), { ...PLAIN, init })
  const second = inspectMedia(await readFile(join(folder, 'index1.m4s')), { ...PLAIN, init })
  for (const { container, faults, tracks } of [first, second]) {
    t.same([container, faults], ['fmp4', []])
    t.match(tracks[0], { kind: 'video', frames: 30, keyFrames: 2, startsWithKeyFrame: true })
    t.match(tracks[0], { width: 160, height: 90, frameRate: 30, videoRange: 'SDR' })
    t.match(tracks[1], { kind: 'audio', sampleRate: 48_000, channels: 1 })
  }
  t.equal(first.tracks[0]!.nextDecodeSec, second.tracks[0]!.firstDecodeSec)
  const without = inspectMedia(await readFile(join(folder, 'index0.m4s')), PLAIN)
  t.same([without.container, without.tracks], ['fmp4', []])
})

t.test('reads packed audio from its ID3 timestamp on', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const folder = t.testdir()
  const args = [...AUDIO, ...AAC, '-t', '1', '-f', 'adts', 'audio.aac']
  await run('ffmpeg', ['-v', 'error', ...args], { cwd: folder })
  const frames = await readFile(join(folder, 'audio.aac'))
  const owner = Buffer.from('com.apple.streaming.transportStreamTimestamp\0')
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(2n ** 32n + 90_000n)
  const head = Buffer.from([0x50, 0x52, 0x49, 0x56, 0, 0, 0, owner.length + 8, 0, 0])
  const size = head.length + owner.length + 8
  const tag = Buffer.concat([Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, size]), head, owner])
  const facts = inspectMedia(Buffer.concat([tag, time, frames]), PLAIN)
  t.same([facts.container, facts.faults], ['packed-audio', []])
  const startSec = (2 ** 32 + 90_000) / 90_000
  t.match(facts.tracks, [{ codec: 'mp4a.40.2', sampleRate: 48_000, frames: 48, startSec }])
  t.ok(Math.abs(facts.tracks[0]!.endSec - startSec - 1.024) < 1e-6)
  t.match(inspectMedia(frames, PLAIN).faults, [{ kind: 'timestamp' }])
})
