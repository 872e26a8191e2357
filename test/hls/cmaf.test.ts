/**
 * Renditions of CMAF beside those of transport stream, and without: formats that change, times, counters.
 */
import t from 'tap'
import { SILENT_BLOCKS } from '../../src/codec/adts.ts'
import { Packager, type PackagerOptions, type PackagerOutput } from '../../src/hls/packager.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import type { Track } from '../../src/mpegts/track.ts'
import { byteStream } from '../codec/nal-builder.ts'
import {
  listBoxes,
  payloadsOf,
  readNalUnits,
  readSamples,
  readTrackHeader,
} from '../mp4/box-tree.ts'
import { demux, readFixture } from '../mpegts/demux.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { shift } from '../mpegts/edit.ts'
import {
  AUDIO,
  CLIP_START_TICKS,
  VIDEO,
  audioUnits,
  interleave,
  moved,
  program,
  programOf,
  unit,
  videoUnits,
} from './source.ts'

const SEC = 90_000
const SMALL: Track = { ...VIDEO, pid: 260 }

type Step = DemuxerOutput | 'discontinuity'

function run(steps: readonly Step[], options: Partial<PackagerOptions> = {}) {
  const defaults = { epoch: 'e', segmentSec: 2, maxSegmentSec: 10 }
  const packager = new Packager({ ...defaults, formats: ['ts', 'cmaf'], ...options })
  const outputs: PackagerOutput[] = []
  for (const step of steps) {
    outputs.push(
      ...(step === 'discontinuity' ? packager.discontinuity() : packager.push(step, 1e12)),
    )
  }
  outputs.push(...packager.end())
  const segments = outputs.flatMap((output) => (output.type === 'segment' ? output.segment : []))
  const of = (name: string) => segments.filter(({ rendition }) => rendition === name)
  return { packager, outputs, segments, of }
}

/** Video at 30 frames per second with a key frame each second, and audio. */
function clip(sec: number, fromSec = 10): PesUnit[] {
  const fromTicks = fromSec * SEC
  return interleave(
    { units: videoUnits({ fromTicks, frames: sec * 30, framesPerGop: 30 }) },
    { units: audioUnits(fromTicks, Math.floor((sec * SEC) / 15_360)), delayTicks: 9000 },
  )
}

const SPS_START = Buffer.from('6742c00d', 'hex')

/** Copy with another level in its SPS, if it has one. */
function relevel(value: PesUnit, newParameters: boolean): PesUnit {
  const bytes = Buffer.concat(value.chunks)
  const payload = Buffer.from(value.payload)
  const [at, payloadAt] = [bytes.indexOf(SPS_START), payload.indexOf(SPS_START)]
  if (at < 0) return value
  bytes[at + 3] = 0x1e
  payload[payloadAt + 3] = 0x1e
  return { ...value, chunks: [bytes], payload, newParameters }
}

const OPUS: Track = {
  ...{ ...AUDIO, pid: 258, streamType: 0x06, codec: 'opus' },
  parameters: { codecString: 'opus', sampleRate: 48_000, channels: 2 },
}

/** PES packets of one Opus packet of 20 ms each. */
function opusUnits(track: Track, count: number): PesUnit[] {
  return Array.from({ length: count }, (_, index) => {
    const ptsTicks = 10 * SEC + index * 1800
    const packet = Buffer.concat([Buffer.from([0x7f, 0xe0, 60, 0xfc]), Buffer.alloc(59, 7)])
    const pes = pesPacket(packet, { ptsTicks, streamId: 0xbd })
    const { bytes } = new TsBuilder().unit(track.pid, pes)
    const times = { ptsTicks, dtsTicks: ptsTicks }
    const content = { chunks: [bytes], sizeBytes: bytes.length, payload: packet }
    return { ...audioUnits(0, 1)[0]!, track, ...content, ...times }
  })
}

t.test('Opus is in CMAF, and not in transport stream', async (t) => {
  const video = videoUnits({ fromTicks: 10 * SEC, frames: 180, framesPerGop: 60 })
  for (const channels of [1, 2, 6]) {
    const track: Track = { ...OPUS, parameters: { ...OPUS.parameters!, channels } }
    const units = interleave({ units: video }, { units: opusUnits(track, 300), delayTicks: 9000 })
    const { outputs, of } = run([program(programOf(VIDEO, track)), ...units.map(unit)])
    t.notOk(outputs.some(({ type }) => type === 'fact'))
    t.same(
      of('main').map(({ tracks }) => tracks),
      [[VIDEO], [VIDEO], [VIDEO]],
    )
    const segments = of('cmaf-audio-1')
    t.same(
      segments.map(({ durationSec }) => durationSec),
      [2, 2, 2],
    )
    const [dops] = payloadsOf(segments[0]!.map!.bytes, 'moov/trak/mdia/minf/stbl/stsd/Opus/dOps')
    // Version, channels, pre-skip, sample rate, gain, mapping family.
    const family = channels > 2 ? '01' : '00'
    t.equal(dops!.slice(0, 22), `000${channels}00000000bb800000${family}`)
  }
})

t.test('frames of audio that precede the first key frame are counted as dropped', async (t) => {
  const audio = audioUnits(CLIP_START_TICKS - 3 * 1920, 20)
  const video = videoUnits({ frames: 90, framesPerGop: 30 })
  const units = interleave({ units: video }, { units: audio, delayTicks: 9000 })
  for (const formats of [['cmaf'], ['ts', 'cmaf']] as const) {
    const { packager } = run([program(programOf(VIDEO, AUDIO)), ...units.map(unit)], { formats })
    t.equal(packager.stats.droppedSamples, 3)
  }
})

t.test(
  'AAC whose headers do not tell the channels is left out from its first frame on',
  async (t) => {
    const { parameters, ...unknown } = AUDIO
    const { channels: _, ...others } = parameters!
    const track: Track = { ...AUDIO, parameters: others }
    const units = clip(6).map((value) => (isVideo(value) ? value : { ...value, track }))
    const first = units.findIndex((value) => !isVideo(value))
    t.ok(first > 0, 'behind the first video')
    const steps = [
      program(programOf(VIDEO, unknown)),
      ...units.slice(0, first).map(unit),
      program(programOf(VIDEO, track)),
      ...units.slice(first).map(unit),
    ]
    const { packager, of, outputs } = run(steps)
    t.equal(packager.stats.droppedAudioPackets, units.filter((value) => !isVideo(value)).length)
    for (const name of ['main', 'cmaf-video-1']) {
      const segments = of(name)
      t.strictSame(
        segments.map(({ discontinuity, tracks }) => [discontinuity, tracks.map(({ pid }) => pid)]),
        [
          [false, name === 'main' ? [VIDEO.pid, AUDIO.pid] : [VIDEO.pid]],
          [true, [VIDEO.pid]],
          [false, [VIDEO.pid]],
          [false, [VIDEO.pid]],
        ],
        name,
      )
    }
    t.strictSame(
      outputs.findLast(({ type }) => type === 'renditions'),
      {
        type: 'renditions',
        renditions: ['main', 'cmaf-video-1'],
      },
    )
    const codes = (tracks: 'all' | 'compatible') =>
      run(steps, { tracks }).outputs.flatMap((each) => (each.type === 'fact' ? each.fact.code : []))
    t.strictSame(codes('compatible'), ['TRACKS_LEFT_OUT'])
    t.strictSame(codes('all'), ['TRACKS_NOT_IN_CMAF'])
    const audio = run(steps, { tracks: 'all' })
      .of('main')
      .map(({ tracks }) => tracks.at(-1)?.pid)
    t.strictSame(audio, [AUDIO.pid, AUDIO.pid, AUDIO.pid], 'with HLS_TRACKS=all')
  },
)

t.test('AAC with several raw data blocks in a frame is told of', async (t) => {
  const blocks = clip(8).map((value) => {
    if (isVideo(value)) return value
    const [bytes, payload] = [Buffer.concat(value.chunks), Buffer.from(value.payload)]
    for (const frames of [bytes, payload]) {
      for (let at = frames.indexOf('fff14c', 0, 'hex'); at >= 0;) {
        frames[at + 6]! |= 1
        at = frames.indexOf('fff14c', at + 1, 'hex')
      }
    }
    return { ...value, chunks: [bytes], payload }
  })
  for (const formats of [['ts', 'cmaf'], ['cmaf']] as const) {
    const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, formats })
    packager.push(program(programOf(VIDEO, AUDIO)), 1e12)
    for (const value of blocks.slice(0, 200)) packager.push(unit(value), 1e12)
    t.same(packager.facts, [{ code: 'TRACKS_NOT_IN_CMAF', tracks: [AUDIO] }])
  }
})

t.test('audio that CMAF drops is told of', async (t) => {
  const { channels: _, ...unknown } = OPUS.parameters!
  const factsOf = (...tracks: Track[]) => {
    const { outputs } = run([program(programOf(VIDEO, ...tracks))])
    const facts = outputs.flatMap((output) => (output.type === 'fact' ? output.fact : []))
    return facts.map((fact) => [fact.code, 'tracks' in fact && fact.tracks])
  }
  const dualMono = { ...OPUS, parameters: unknown }
  t.same(factsOf(dualMono), [['TRACKS_LEFT_OUT', [dualMono]]], 'a layout that is not supported')
  const english: Track = { ...AUDIO, language: 'eng' }
  const french: Track = { ...OPUS, language: 'fra' }
  t.same(factsOf(english, french), [['AUDIO_CODECS_DIFFER', [french]]])
  const layerII: Track = {
    ...{ ...AUDIO, pid: 259, streamType: 0x03, codec: 'mp2' },
    parameters: { codecString: 'mp4a.40.33', sampleRate: 48_000, channels: 2 },
  }
  t.same(factsOf(layerII), [['TRACKS_NOT_IN_CMAF', [layerII]]])
})

const isVideo = ({ track }: PesUnit) => track.kind === 'video'

const CONFIGURATION = 'moov/trak/mdia/minf/stbl/stsd/avc1/avcC'

/** Profile and level of each segment, and whether it begins with a discontinuity. */
const codecsOf = (segments: readonly Segment[]) =>
  segments.map(({ map, discontinuity }) => [
    map === undefined ? 'gap' : payloadsOf(map.bytes, CONFIGURATION)[0]!.slice(2, 8),
    discontinuity,
  ])

t.test('new parameter sets in mid-stream begin a timeline with another init segment', async (t) => {
  let isNew = true
  const units = clip(8).map((value) => {
    if (!isVideo(value) || value.dtsTicks < 14 * SEC) return value
    const changed = relevel(value, isNew)
    if (changed !== value) isNew = false
    return changed
  })
  const { of, packager } = run([program(programOf(VIDEO, AUDIO)), ...units.map(unit)])
  const expected = [
    ['42c00d', false],
    ['42c00d', false],
    ['42c01e', true],
    ['42c01e', false],
  ]
  t.same(codecsOf(of('cmaf-video-1')), expected)
  t.equal(new Set(of('cmaf-video-1').map(({ map }) => map!.uri)).size, 2)
  t.equal(new Set(of('cmaf-audio-1').map(({ map }) => map!.uri)).size, 1)
  for (const { map } of of('cmaf-video-1')) t.match(map!.uri, /^e-v1-[0-9a-f]{12}\.mp4$/)
  const discontinuities = expected.map(([, discontinuity]) => discontinuity)
  for (const name of ['main', 'cmaf-audio-1'])
    t.same(
      of(name).map(({ discontinuity }) => discontinuity),
      discontinuities,
      name,
    )
  const frames = (name: string) => of(name).reduce((sum, { videoFrames }) => sum + videoFrames, 0)
  t.same([frames('cmaf-video-1'), frames('main')], [240, 240], 'no frame is lost')
  t.equal(packager.stats.discontinuities, 1)
})

t.test('transport stream alone goes on with new parameter sets', async (t) => {
  const units = clip(8).map((value) => (isVideo(value) ? relevel(value, true) : value))
  const { packager } = run([program(programOf(VIDEO, AUDIO)), ...units.map(unit)], {
    formats: ['ts'],
  })
  t.equal(packager.stats.discontinuities, 0)
})

t.test('new parameter sets of a variant begin a timeline at the next key frame', async (t) => {
  const main = videoUnits({ fromTicks: 10 * SEC, frames: 240, framesPerGop: 30 })
  const steps = main.flatMap((value) => {
    const small = moved(value, SMALL)
    return [unit(value), unit(value.dtsTicks < 14 * SEC ? small : relevel(small, true))]
  })
  const { of } = run([program(programOf(VIDEO, SMALL)), ...steps])
  t.same(codecsOf(of('cmaf-video-2')), [
    ['42c00d', false],
    ['42c00d', false],
    // Its first segment was planned before its new parameter sets came.
    ['gap', false],
    ['42c01e', true],
    ['42c01e', false],
  ])
  t.same(new Set(codecsOf(of('cmaf-video-1')).map(([codec]) => codec)), new Set(['42c00d']))
  const frames = of('cmaf-video-2').reduce((sum, { videoFrames }) => sum + videoFrames, 0)
  t.equal(frames, 210, 'a GOP is lost')
})

/** Demuxes video at 30 frames per second, a GOP each second, with parameter sets before some frames. */
function videoWith(setsOf: (index: number) => readonly Buffer[], frames = 240): DemuxerOutput[] {
  const ts = new TsBuilder().program([{ pid: VIDEO.pid, streamType: VIDEO.streamType }])
  for (let index = 0; index < frames; index++) {
    const picture = Buffer.alloc(100, 0xaa)
    picture[0] = index % 30 === 0 ? 0x65 : 0x41
    const bytes = byteStream(Buffer.from('09f0', 'hex'), ...setsOf(index), picture)
    ts.unit(VIDEO.pid, pesPacket(bytes, { ptsTicks: 900_000 + index * 3000, length: 'none' }))
  }
  return demux(ts.bytes)
}

const SPS = Buffer.from('6742c00dda05067e7c0440000003004000000f03c50aa8', 'hex')
/** Three of id 0, and one of id 1. */
const [PPS, PPS_B, PPS_C, PPS_ID_1] = ['68ce0fc8', '68ce0f1320', '68ce0f3480', '685383f2'].map(
  (hex) => Buffer.from(hex, 'hex'),
) as [Buffer, Buffer, Buffer, Buffer]

/** Sample entry and CODECS of each segment, and whether it begins with a discontinuity. */
const entriesOf = (segments: readonly Segment[]) =>
  segments.map(({ map, tracks, discontinuity }) => [
    listBoxes(map!.bytes)
      .find(({ path }) => /stsd\/\w+$/.test(path))!
      .path.slice(-4),
    tracks[0]!.parameters!.codecString.slice(0, 4),
    discontinuity,
  ])

/** Parameter sets in samples, with the number of the frame. */
const setsIn = (segments: readonly Segment[]) =>
  segments
    .flatMap(({ bytes }) => readSamples(bytes))
    .flatMap(({ bytes }, index) =>
      readNalUnits(bytes)
        .filter(([type = 0]) => [0x67, 0x68].includes(type))
        .map((nal) => `${index} ${nal.toString('hex')}`),
    )

t.test('a PPS that is redefined is in the samples, and costs one discontinuity', async (t) => {
  const kinds: Record<string, (index: number) => readonly Buffer[]> = {
    'within GOPs': (index) =>
      index % 30 === 0
        ? [SPS, PPS]
        : index % 30 === 10
          ? [PPS_B]
          : index % 30 === 20
            ? [PPS_C]
            : [],
    'at key frames': (index) =>
      index % 30 === 0 ? [SPS, [PPS, PPS_B, PPS_C][(index / 30) % 3]!] : [],
  }
  for (const [kind, setsOf] of Object.entries(kinds)) {
    for (const partSec of [undefined, 0.2]) {
      const { of, outputs, packager } = run(videoWith(setsOf), { segmentSec: 1, partSec })
      const [first, ...rest] = entriesOf(of('cmaf-video-1'))
      t.same(first, ['avc1', 'avc1', false], kind)
      t.equal(rest.length, 7)
      t.same(rest, [['avc3', 'avc3', true], ...rest.slice(1).map(() => ['avc3', 'avc3', false])])
      t.same(new Set(of('cmaf-video-1').map(({ map }) => map!.uri)).size, 2)
      const inTs = of('main').map(({ discontinuity }) => discontinuity)
      t.same(inTs, [false, true, ...rest.slice(1).map(() => false)])
      t.ok(of('main').every(({ tracks }) => tracks[0]!.parameters!.codecString === 'avc1.42c00d'))
      const sent = Array.from({ length: 240 }, (_, index) =>
        setsOf(index).map((nal) => `${index} ${nal.toString('hex')}`),
      ).flat()
      t.same(setsIn(of('cmaf-video-1')), sent.slice(2), 'all but those of the first key frame')
      const facts = outputs.flatMap((output) => (output.type === 'fact' ? output.fact : []))
      t.match(facts, [{ code: 'PARAMETER_SETS_VARY', tracks: [{ pid: VIDEO.pid }] }])
      t.match(packager.stats, { discontinuities: 1 })
    }
  }
})

t.test(
  'a PPS of another id, sent once, is in its samples and in the next init segment',
  async (t) => {
    const { of, outputs } = run(
      videoWith((index) => (index % 30 === 0 ? [SPS, PPS] : index === 40 ? [PPS_ID_1] : [])),
      { segmentSec: 1 },
    )
    const segments = of('cmaf-video-1')
    t.same(
      entriesOf(segments).map(([entry]) => entry),
      segments.map(() => 'avc1'),
    )
    t.same(
      segments.map(({ discontinuity }) => discontinuity),
      [false, false, true, false, false, false, false, false],
    )
    t.same(setsIn(segments), ['40 685383f2'])
    const sets = segments.map(({ map }) => payloadsOf(map!.bytes, CONFIGURATION)[0]!)
    t.same(
      sets.map((avcC) => [avcC.includes('68ce0fc8'), avcC.includes('685383f2')]),
      segments.map((_, index) => [true, index > 1]),
    )
    t.equal(
      segments.reduce((sum, { videoFrames }) => sum + videoFrames, 0),
      240,
    )
    t.notOk(outputs.some(({ type }) => type === 'fact'))
  },
)

t.test('sets stay in band behind a new SPS, up to the next encoder', async (t) => {
  const wider = Buffer.from(SPS)
  wider[3] = 0x1e
  const first = videoWith(
    (index) => (index % 30 > 0 ? [] : [index < 90 ? SPS : wider, index % 60 === 0 ? PPS : PPS_B]),
    150,
  )
  const next = videoWith((index) => (index % 30 === 0 ? [wider, PPS] : []), 60)
  const { of, packager } = run([...first, 'discontinuity', ...next], { segmentSec: 1 })
  t.same(entriesOf(of('cmaf-video-1')), [
    ['avc1', 'avc1', false],
    ['avc3', 'avc3', true],
    ['avc3', 'avc3', false],
    ['avc3', 'avc3', true],
    ['avc3', 'avc3', false],
    ['avc1', 'avc1', true],
    ['avc1', 'avc1', false],
  ])
  t.same(packager.facts, [])
})

t.test('audio that leaves the program and comes back needs no discontinuity', async (t) => {
  const french: Track = { ...AUDIO, pid: 261, language: 'fra' }
  const units = clip(12).flatMap((value) =>
    isVideo(value) ? [value] : [value, moved({ ...value, chunks: [...value.chunks] }, french)],
  )
  const steps = units.flatMap((value, index): DemuxerOutput[] => [
    ...(index === 150 ? [program(programOf(VIDEO, AUDIO))] : []),
    ...(index === 300 ? [program(programOf(VIDEO, AUDIO, french))] : []),
    unit(value),
  ])
  const { of, packager } = run([program(programOf(VIDEO, AUDIO, french)), ...steps])
  const own = of('cmaf-audio-2')
  t.equal(packager.stats.discontinuities, 0)
  t.ok(own.some(({ sizeBytes }) => sizeBytes === 0) && own.at(-1)!.sizeBytes > 0)
  t.equal(new Set(own.flatMap(({ map }) => map?.uri ?? [])).size, 1)
})

t.test('a segment whose encoder is lost before its audio is silent, and no gap', async (t) => {
  const cutTicks = 14 * SEC
  const isSent = (value: PesUnit) => value.ptsTicks < cutTicks + (isVideo(value) ? 9000 : -18_000)
  const { of } = run([program(programOf(VIDEO, AUDIO)), ...clip(6).filter(isSent).map(unit)])
  const [video, audio] = [of('cmaf-video-1').at(-1)!, of('cmaf-audio-1').at(-1)!]
  t.equal(readSamples(Buffer.concat(video.chunks)).length, 3)
  t.equal(audio.mediaSequence, video.mediaSequence)
  t.equal(audio.map?.uri, of('cmaf-audio-1')[0]!.map?.uri)
  t.equal(payloadsOf(Buffer.concat(audio.chunks), 'moof/traf/tfdt').length, 1)
  const samples = readSamples(Buffer.concat(audio.chunks))
  t.equal(samples.length, 5)
  t.ok(samples.every(({ bytes }) => bytes.equals(SILENT_BLOCKS[2]!)))
  const ticks = samples.reduce((sum, { durationTicks }) => sum + durationTicks, 0)
  t.equal(ticks, 48_000 * audio.durationSec)
})

t.test('audio lasts until the end of a timeline of video', async (t) => {
  for (const partSec of [undefined, 0.2]) {
    // A PES packet of audio more than before, and as many frames of video as the next one would have lasted.
    const isSent = (value: PesUnit) => value.ptsTicks < 14 * SEC + (isVideo(value) ? 12_000 : -9000)
    const units = clip(6).filter(isSent).map(unit)
    const { of } = run([program(programOf(VIDEO, AUDIO)), ...units, 'discontinuity'], { partSec })
    const endSec = (name: string) => {
      const { timescale } = readTrackHeader(of(name)[0]!.map!.bytes)
      const { decodeTicks, durationTicks } = of(name)
        .flatMap(({ bytes }) => readSamples(bytes))
        .at(-1)!
      return (decodeTicks + durationTicks) / timescale
    }
    t.ok(Math.abs(endSec('cmaf-audio-1') - endSec('cmaf-video-1')) < 1 / 48_000, `${partSec}`)
  }
})

t.test('audio is dated by its own frames, as EXTINF adds up', async (t) => {
  const steps = [program(programOf(VIDEO, AUDIO)), ...clip(12).map(unit)]
  for (const partSec of [undefined, 0.2]) {
    const { of, outputs } = run([...steps, 'discontinuity', ...steps], { partSec })
    const audio = of('cmaf-audio-1')
    const parts = outputs.flatMap((output) => (output.type === 'part' ? output.part : []))
    let hasLate = false
    for (const [index, segment] of audio.entries()) {
      const { mediaSequence, programDateTimeMs, durationSec, nextDateTimeMs } = segment
      const video = of('cmaf-video-1')[index]!
      const lateMs = programDateTimeMs - video.programDateTimeMs
      if (segment.discontinuity || index === 0) t.equal(lateMs, 0, 'a timeline begins as video')
      else t.ok(lateMs >= 0 && lateMs < 1024 / 48, `${lateMs} ms`)
      hasLate ||= lateMs > 1
      const next = audio[index + 1]
      if (next === undefined || next.discontinuity) continue
      t.ok(Math.abs(next.programDateTimeMs - programDateTimeMs - durationSec * 1000) < 0.01)
      t.equal(nextDateTimeMs, next.programDateTimeMs, 'hinted with its first part')
      const own = parts.filter((it) => it.rendition === 'cmaf-audio-1')
      for (const part of own.filter((it) => it.mediaSequence === mediaSequence))
        t.equal(part.programDateTimeMs, programDateTimeMs)
    }
    t.ok(hasLate)
  }
})

t.test('an encoder with other parameter sets has an init segment of its own', async (t) => {
  const second = clip(4, 100).map((value) => (isVideo(value) ? relevel(value, false) : value))
  const layout = program(programOf(VIDEO, AUDIO))
  const { of } = run([
    ...[layout, ...clip(4).map(unit), 'discontinuity' as const],
    ...[layout, ...second.map(unit), 'discontinuity' as const],
    ...[layout, ...clip(4).map(unit)],
  ])
  t.same(codecsOf(of('cmaf-video-1')), [
    ...[
      ['42c00d', false],
      ['42c00d', false],
    ],
    ...[
      ['42c01e', true],
      ['42c01e', false],
    ],
    ...[
      ['42c00d', true],
      ['42c00d', false],
    ],
  ])
  const maps = of('cmaf-video-1').map(({ map }) => map!.uri)
  t.equal(maps[0], maps[5], 'the same content has the same name')
})

t.test('formats: cmaf makes nothing of transport stream', async (t) => {
  const { outputs, segments } = run([program(programOf(VIDEO, AUDIO)), ...clip(6).map(unit)], {
    formats: ['cmaf'],
  })
  t.same(
    new Set(segments.map(({ rendition }) => rendition)),
    new Set(['cmaf-video-1', 'cmaf-audio-1']),
  )
  t.match(
    outputs.find(({ type }) => type === 'renditions'),
    { renditions: ['cmaf-video-1', 'cmaf-audio-1'] },
  )
  for (const output of outputs) {
    if (output.type === 'start') t.same([...output.start.uris.keys()][0], 'cmaf-video-1')
  }
  const audio = run([program(programOf(AUDIO)), ...audioUnits(CLIP_START_TICKS, 60).map(unit)], {
    formats: ['cmaf'],
  })
  t.match(
    audio.outputs.find(({ type }) => type === 'renditions'),
    { renditions: ['cmaf-audio-1'] },
  )
  t.ok(audio.of('cmaf-audio-1').length >= 4)
})

t.test('drops are counted once, with any formats', async (t) => {
  const units = clip(45).map((value, index) => {
    // Audio goes on with another clock.
    const ptsTicks = value.ptsTicks + (isVideo(value) || value.dtsTicks < 15 * SEC ? 0 : 5000 * SEC)
    return { ...value, ptsTicks, dtsTicks: ptsTicks, damaged: index % 7 === 3 }
  })
  const steps = [program(programOf(VIDEO, AUDIO)), ...units.map(unit)]
  const statsOf = (formats: PackagerOptions['formats']) => run(steps, { formats }).packager.stats
  const expected = statsOf(['ts'])
  t.ok(expected.damagedPackets > 5 && expected.droppedAudioPackets > 10, JSON.stringify(expected))
  t.same(statsOf(['ts', 'cmaf']), expected)
  t.same(statsOf(['cmaf', 'ts']), expected)
  t.same(statsOf(['cmaf']), expected)
})

t.test(
  'a second field is in the sample of its frame, though the input is overwritten',
  async (t) => {
    const frames = videoUnits({ fromTicks: 10 * SEC, frames: 150, framesPerGop: 30 })
    const packager = new Packager({
      ...{ epoch: 'e', formats: ['cmaf'], segmentSec: 1, maxSegmentSec: 10 },
    })
    const segments: Segment[] = []
    const push = (output: DemuxerOutput) => {
      for (const each of packager.push(output, 1e12))
        if (each.type === 'segment') segments.push(each.segment)
      if (output.type === 'unit') for (const chunk of output.unit.chunks) chunk.fill(0)
    }
    push(program(programOf(VIDEO)))
    for (const frame of frames) {
      const chunks = frame.chunks.map((chunk) => Buffer.from(chunk))
      push(unit(frame))
      const { dtsTicks, ptsTicks, ...rest } = frame
      const times = { dtsTicks: dtsTicks + 1500, ptsTicks: ptsTicks + 1500 }
      push(unit({ ...rest, ...times, chunks, randomAccess: false, startsFrame: false }))
    }
    t.equal(segments.length, 4)
    for (const { bytes, videoFrames } of segments) {
      const samples = readSamples(bytes)
      t.equal(samples.length, videoFrames)
      const whole = samples.filter(({ bytes: own }) => {
        const half = own.length / 2
        return own.subarray(0, half).equals(own.subarray(half)) && own.includes(0xaa)
      })
      t.equal(whole.length, 30)
    }
  },
)

t.test('times go on over the wrap of 33 bits, in all renditions', async (t) => {
  const bytes = readFixture('demo')
  const plain = run(demux(bytes))
  const shifted = shift({ bytes, sec: 8 }, 2 ** 33 / SEC - 5)
  const wrapped = run(demux(shifted.bytes))
  for (const name of ['cmaf-video-1', 'cmaf-audio-1']) {
    const samplesOf = ({ of }: typeof plain) => of(name).flatMap((it) => readSamples(it.bytes))
    const [before, after] = [samplesOf(plain), samplesOf(wrapped)]
    t.ok(before.length > 100, `${before.length} samples`)
    const { timescale } = readTrackHeader(plain.of(name)[0]!.map!.bytes)
    const offsets = after.map((sample, index) => sample.decodeTicks - before[index]!.decodeTicks)
    const [least, most] = [Math.min(...offsets), Math.max(...offsets)]
    t.ok(most - least <= 1, `${name}: ${least} to ${most}`)
    t.ok(least / timescale > 90_000)
    t.equal(wrapped.packager.stats.discontinuities, 0)
    t.same(
      after.map((sample) => sample.bytes),
      before.map((sample) => sample.bytes),
    )
  }
})
