import t from 'tap'
import { decodeAdtsHeader, SILENT_BLOCKS } from '../../../src/codec/adts.ts'
import { Packager } from '../../../src/hls/packager.ts'
import { RenditionMeter } from '../../../src/hls/playlist/rendition-meter.ts'
import { SteadyTracks } from '../../../src/hls/rendition/steady-tracks.ts'
import type { Segment } from '../../../src/hls/store/segment.ts'
import type { DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import type { Track } from '../../../src/mpegts/track.ts'
import { readPackets, readPtsTicks } from '../../support/ts-reader.ts'
import { readSamples } from '../../mp4/box-tree.ts'
import {
  AUDIO,
  AUDIO_UNIT_TICKS,
  audioUnit,
  audioUnits,
  CLIP_START_TICKS,
  interleave,
  program,
  programOf,
  unit,
  VIDEO,
  videoUnit,
  videoUnits,
} from '../source.ts'

const SEC = 90_000
const POLICY = { formats: ['ts', 'cmaf'], policy: 'compatible' } as const

/**
 * Publishes outputs of the demuxer in both formats.
 *
 * @param options.isPaced  whether PES packets arrive at their DTS, and not all at once
 */
function run(
  outputs: readonly DemuxerOutput[],
  { isPaced = false, partSec }: { isPaced?: boolean; partSec?: number } = {},
) {
  const steady = new SteadyTracks(POLICY)
  const packager = new Packager({
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, formats: POLICY.formats, partSec },
  })
  const segments: Segment[] = []
  const facts = new Set<string>()
  const take = (results: ReturnType<Packager['push']>) => {
    for (const result of results) if (result.type === 'segment') segments.push(result.segment)
    if (!steady.begun && segments.length > 0) steady.begin(packager.tracks)
  }
  for (const output of outputs) {
    const wallMs = isPaced && output.type === 'unit' ? (output.unit.dtsTicks / SEC) * 1000 : 0
    for (const each of steady.push(output)) take(packager.push(each, wallMs))
    for (const { code } of steady.facts) facts.add(code)
  }
  take(packager.end())
  const of = (name: string) => segments.filter(({ rendition }) => rendition === name)
  return { of, facts: [...facts], packager, steady }
}

const ptsOf = (segments: readonly Segment[]) =>
  segments.flatMap(({ bytes }) => readPtsTicks(readPackets(bytes), AUDIO.pid))

const videoTimesOf = (segments: readonly Segment[]) =>
  segments.flatMap(({ bytes }) => readPtsTicks(readPackets(bytes), VIDEO.pid))

/** Audio samples of CMAF: whether each is silent. */
const samplesOf = (segments: readonly Segment[]) =>
  segments
    .flatMap(({ bytes }) => (bytes.length === 0 ? [] : readSamples(bytes)))
    .map(({ bytes }) => bytes.equals(SILENT_BLOCKS[2]!))

const holesIn = (times: readonly number[]) =>
  times.slice(1).filter((ticks, index) => Math.abs(ticks - times[index]!) > AUDIO_UNIT_TICKS + 4)

/** The same PES packets, which arrive as before, with other times from a time on. */
function jumped(units: readonly PesUnit[], fromTicks: number, jumpSec: number) {
  return units.map((value) => {
    const sentTicks = value.dtsTicks + (value.track === AUDIO ? 9000 : 0)
    const jumpTicks = value.dtsTicks < fromTicks ? 0 : jumpSec * SEC
    const dtsTicks = value.dtsTicks + jumpTicks
    const isAudio = value.track === AUDIO
    const moved = isAudio ? audioUnit(dtsTicks) : videoUnit(dtsTicks, { key: value.randomAccess })
    return { sentTicks, moved }
  })
}

const inOrder = (...lanes: ReturnType<typeof jumped>[]) =>
  lanes
    .flat()
    .toSorted((a, b) => a.sentTicks - b.sentTicks)
    .map(({ moved }) => unit(moved))

const shiftSecOf = ({ facts }: SteadyTracks) =>
  facts.find((fact) => fact.code === 'AUDIO_REALIGNED')?.shiftSec ?? 0

const FROM = 2000 * SEC
const layout = program(programOf(VIDEO, AUDIO))

t.test('audio beside video in bursts of seconds gets no silence', async (t) => {
  const video = videoUnits({ frames: 360, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 71)
  // Each GOP comes at once, when the next one has ended.
  const arriving = video.map((value, index) => ({
    value,
    atTicks: CLIP_START_TICKS + Math.floor(index / 60 + 2) * 2 * SEC,
  }))
  const heard = audio.map((value) => ({ value, atTicks: value.dtsTicks }))
  const units = [
    video[0]!,
    ...[...arriving.slice(1), ...heard]
      .toSorted((a, b) => a.atTicks - b.atTicks)
      .map(({ value }) => value),
  ]
  const { of, facts, packager } = run([layout, ...units.map(unit)])
  t.strictSame(facts, [])
  t.strictSame(
    ptsOf(of('main')),
    audio.map(({ ptsTicks }) => ptsTicks),
  )
  t.strictSame(
    videoTimesOf(of('main')),
    video.map(({ ptsTicks }) => ptsTicks),
  )
  t.equal(packager.stats.droppedAudioPackets, 0)
})

t.test('audio that stays away in an unchanged program is silence', async (t) => {
  const video = videoUnits({ frames: 600, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 116).toSpliced(30, 60)
  const units = interleave({ units: video }, { units: audio, delayTicks: 9000 })
  const { of, facts, packager } = run([layout, ...units.map(unit)])
  t.same(facts, ['AUDIO_GONE'])
  t.equal(packager.stats.discontinuities, 0)
  for (const name of ['main', 'cmaf-audio-1']) {
    t.equal(of(name).length, 10)
    t.notOk(
      of(name).some(({ sizeBytes }) => sizeBytes === 0),
      `${name} has no gap`,
    )
  }
  const times = ptsOf(of('main'))
  t.same(holesIn(times), [])
  t.equal(audio.filter(({ ptsTicks }) => times.includes(ptsTicks)).length, audio.length)
  const samples = samplesOf(of('cmaf-audio-1'))
  t.equal(samples.filter((silent) => !silent).length, audio.length * 8)
  t.ok(Math.abs(samples.filter(Boolean).length - 60 * 8) <= 16, 'and at the end')
})

const MONO: Track = { ...AUDIO, parameters: { ...AUDIO.parameters!, channels: 1 } }

/** A PES packet of AUDIO as mono. */
function asMono(value: PesUnit): PesUnit {
  const payload = Buffer.from(value.payload)
  for (let at = 0; at < payload.length; at += decodeAdtsHeader(payload, at)!.sizeBytes) {
    payload[at + 2]! &= 0xfe
    payload[at + 3] = (payload[at + 3]! & 0x3f) | 0x40
  }
  return { ...value, track: MONO, payload }
}

t.test('audio in another format is silence up to the next key frame', async (t) => {
  const video = videoUnits({ frames: 360, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 70)
  const changed = audio.map((value, index) => (index < 30 ? value : asMono(value)))
  const units = interleave({ units: video }, { units: changed, delayTicks: 9000 }).map(unit)
  const at = units.findIndex((output) => output.type === 'unit' && output.unit.track === MONO)
  units.splice(at, 0, program(programOf(VIDEO, MONO), true))
  const { of, packager } = run([layout, ...units])
  t.equal(packager.stats.discontinuities, 1)
  const times = ptsOf(of('main'))
  t.same(holesIn(times), [])
  const keyTicks = video.find(
    ({ randomAccess, dtsTicks }) => randomAccess && dtsTicks > audio[30]!.dtsTicks,
  )!.dtsTicks
  const lost = audio.filter(
    ({ dtsTicks }) => dtsTicks >= audio[30]!.dtsTicks && dtsTicks < keyTicks,
  ).length
  const segments = of('cmaf-audio-1')
  t.notOk(
    segments.some(({ sizeBytes }) => sizeBytes === 0),
    'no gap',
  )
  const samples = samplesOf(segments)
  t.ok(Math.abs(samples.filter(Boolean).length - lost * 8) <= 8, 'silence for what is lost')
  t.ok(Math.abs(samples.length - audio.length * 8) <= 8, 'nothing is missing')
})

t.test('audio of another codec begins with the key frame behind its program map', (t) => {
  const steady = new SteadyTracks(POLICY)
  const { parameters, ...undescribed } = { ...AUDIO, streamType: 0x81, codec: 'ac3' as const }
  const track: Track = { ...undescribed, parameters: { ...parameters!, codecString: 'ac-3' } }
  steady.push(layout)
  for (const value of [videoUnit(FROM, { key: true }), ...audioUnits(FROM, 2)])
    steady.push(unit(value))
  steady.push(program(programOf(VIDEO, undescribed), true))
  const ticks = FROM + 3 * AUDIO_UNIT_TICKS
  const silent = steady.push(unit(videoUnit(ticks, { key: true })))
  t.equal(silent.length, 2, 'silence, and the key frame')
  steady.push(program(programOf(VIDEO, track)))
  const output = unit({ ...audioUnit(ticks), track })
  t.same(steady.push(output), [output])
  t.end()
})

t.test('audio ahead of the video changes its format with one discontinuity', async (t) => {
  const video = videoUnits({ frames: 360, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 68)
  for (const aheadSec of [0.3, 0.7, 1.5]) {
    const changed = audio.map((value, index) => (index < 27 ? value : asMono(value)))
    const lane = { units: changed, delayTicks: -aheadSec * SEC }
    const units = interleave({ units: video }, lane).map(unit)
    const at = units.findIndex((output) => output.type === 'unit' && output.unit.track === MONO)
    units.splice(at, 0, program(programOf(VIDEO, MONO), true))
    const { packager } = run([layout, ...units])
    t.equal(packager.stats.discontinuities, 1, `${aheadSec} s ahead`)
  }
})

t.test('clocks that jump with a change of format are one discontinuity', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 480, framesPerGop: 60 })
  const audio = audioUnits(FROM, 92)
  for (const audioFrom of [4.8, 5]) {
    const moved = jumped(audio, FROM + 5 * SEC, 1000).map((each) =>
      each.sentTicks < FROM + audioFrom * SEC ? each : { ...each, moved: asMono(each.moved) },
    )
    const units = inOrder(jumped(video, FROM + 5 * SEC, 1000), moved)
    const at = units.findIndex((output) => output.type === 'unit' && output.unit.track === MONO)
    units.splice(at, 0, program(programOf(VIDEO, MONO), true))
    const { of, packager } = run([layout, ...units])
    t.equal(packager.stats.discontinuities, 1, `from ${audioFrom} s on`)
    t.equal(
      of('main').reduce((sum, { videoFrames }) => sum + videoFrames, 0),
      450,
    )
  }
})

t.test('audio in another format is heard while the video is away', async (t) => {
  const video = videoUnits({ frames: 90, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 150)
  for (const from of [25, 50, 100]) {
    const changed = audio.map((value, index) => (index < from ? value : asMono(value)))
    const units = interleave({ units: video }, { units: changed, delayTicks: 9000 }).map(unit)
    const at = units.findIndex((output) => output.type === 'unit' && output.unit.track === MONO)
    units.splice(at, 0, program(programOf(VIDEO, MONO), true))
    const { of, packager } = run([layout, ...units])
    t.ok(packager.stats.discontinuities <= 2, `from PES packet ${from} on`)
    const times = new Set(ptsOf(of('main')))
    const heard = audio.slice(from).filter(({ ptsTicks }) => times.has(ptsTicks))
    t.ok(heard.length >= 150 - from - 6, `${heard.length} from PES packet ${from} on`)
  }
})

t.test('the clock of one track that jumps alone is followed by the audio', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 600, framesPerGop: 60 })
  const audio = audioUnits(FROM, 116)
  for (const [videoSec, audioSec] of [
    [-60, 0],
    [1000, 0],
    [0, -60],
    [0, 1000],
    [0, 3],
    [0, -3],
  ] as const) {
    const { of, facts, packager, steady } = run([
      layout,
      ...inOrder(jumped(video, FROM + 8 * SEC, videoSec), jumped(audio, FROM + 8 * SEC, audioSec)),
    ])
    const title = `video ${videoSec} s, audio ${audioSec} s`
    t.same(facts, ['AUDIO_REALIGNED'], title)
    t.ok(Math.abs(shiftSecOf(steady) - (videoSec - audioSec)) < 0.001, title)
    t.equal(packager.stats.discontinuities, videoSec === 0 ? 0 : 1, title)
    const samples = samplesOf(of('cmaf-audio-1'))
    t.ok(samples.filter((silent) => !silent).length >= 0.99 * 116 * 8, title)
    for (const name of ['main', 'cmaf-audio-1'])
      t.notOk(
        of(name).some(({ sizeBytes }) => sizeBytes === 0),
        title,
      )
    const [before, after] = [true, false].map((isBefore) =>
      ptsOf(of('main').filter(({ discontinuitySequence: dsn }) => (dsn === 0) === isBefore)),
    )
    t.same([...holesIn(before!), ...holesIn(after!)], [], title)
    const frames = of('main').reduce((sum, { videoFrames }) => sum + videoFrames, 0)
    t.equal(frames, 600, title)
  }
})

t.test('audio that waits for the video to jump too counts with its payloads', async (t) => {
  const steady = new SteadyTracks(POLICY)
  const video = videoUnits({ fromTicks: FROM, frames: 30, framesPerGop: 30 })
  const lanes = interleave({ units: video }, { units: audioUnits(FROM, 5) })
  for (const output of [layout, ...lanes.map(unit)]) steady.push(output)
  const before = steady.heldBytes
  const [first, ...held] = audioUnits(FROM + 1000 * SEC, 600)
  steady.push(unit(first!))
  const { sizeBytes, payload } = first!
  t.ok(steady.heldBytes - before > sizeBytes + payload.length)
  let mostBytes = 0
  for (const value of held) {
    steady.push(unit(value))
    mostBytes = Math.max(mostBytes, steady.heldBytes - before)
  }
  t.ok(mostBytes > 500 * (sizeBytes + payload.length) && mostBytes < 3e6, `${mostBytes} bytes`)
  t.equal(steady.heldBytes, before, 'none waits for ever')
})

t.test('clocks that jump together stay as they are', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 600, framesPerGop: 60 })
  const audio = audioUnits(FROM, 116)
  for (const [videoSec, audioSec] of [
    [-60, -60],
    [1000, 1000],
    [-60, -57],
  ] as const) {
    for (const audioFrom of [7.8, 8.2]) {
      const { of, facts, steady } = run([
        layout,
        ...inOrder(
          jumped(video, FROM + 8 * SEC, videoSec),
          jumped(audio, FROM + audioFrom * SEC, audioSec),
        ),
      ])
      const title = `video ${videoSec} s, audio ${audioSec} s from ${audioFrom} s on`
      if (audioSec === videoSec || audioFrom > 8) {
        t.same(facts, [], title)
        t.ok(ptsOf(of('main')).includes(audio.at(-30)!.ptsTicks + audioSec * SEC), title)
      }
      t.equal(
        steady.facts.some(({ code }) => code === 'AUDIO_GONE'),
        false,
        title,
      )
    }
  }
})

t.test('audio that comes late in a burst, or from another clock at once, is placed', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 600, framesPerGop: 60 })
  const audio = audioUnits(FROM, 116)
  const burst = jumped(audio, FROM, 0).map((each) => ({
    ...each,
    sentTicks: Math.abs(each.sentTicks - FROM - 6 * SEC) < SEC ? FROM + 7 * SEC : each.sentTicks,
  }))
  const late = run([layout, ...inOrder(jumped(video, FROM, 0), burst)])
  t.same(
    late.facts.filter((code) => code !== 'AUDIO_GONE'),
    [],
  )
  t.same(late.steady.facts, [])
  t.ok(ptsOf(late.of('main')).includes(audio.at(-1)!.ptsTicks))
  const apart = run([layout, ...inOrder(jumped(video, FROM, 0), jumped(audio, 0, 1000))])
  t.same(apart.facts, ['AUDIO_REALIGNED'])
  t.notOk(apart.of('cmaf-audio-1').some(({ sizeBytes }) => sizeBytes === 0))
})

t.test('video that stays away, or comes in a burst, moves no audio', async (t) => {
  const all = videoUnits({ fromTicks: FROM, frames: 900, framesPerGop: 60 })
  const audio = audioUnits(FROM, 175)
  // Each frame is complete with the next one, so that the one before the pause comes at its end.
  const withoutLength = (units: readonly PesUnit[]) =>
    jumped(units, 0, 0).map((each, index) => ({
      ...each,
      sentTicks: (units[index + 1]?.dtsTicks ?? each.sentTicks) - 1,
    }))
  const late = (fromSec: number, toSec: number) =>
    jumped(all, 0, 0).map((each) => {
      const isLate = each.sentTicks > FROM + fromSec * SEC
      return {
        ...each,
        sentTicks: isLate ? Math.max(each.sentTicks, FROM + toSec * SEC) : each.sentTicks,
      }
    })
  const cases = {
    'for 8 s': withoutLength(all.toSpliced(190, 240)),
    'for 15 s': withoutLength(all.toSpliced(190, 450)),
    'late by 0.9 s': late(6, 6.9),
    'late by 3 s': late(6, 9),
  }
  for (const [title, video] of Object.entries(cases)) {
    const { of, facts, steady } = run([layout, ...inOrder(video, jumped(audio, 0, 0))])
    t.notOk(facts.includes('AUDIO_REALIGNED'), title)
    t.equal(shiftSecOf(steady), 0, title)
    const times = new Set(ptsOf(of('main')))
    t.ok(times.has(audio[20]!.ptsTicks) && times.has(audio.at(-20)!.ptsTicks), title)
    const silent = samplesOf(of('cmaf-audio-1')).filter(Boolean).length
    t.ok(silent <= 16, `${title}: silence only behind the audio`)
  }
})

t.test('a PES packet makes no more than 10 s of silence', async (t) => {
  const second: Track = { ...AUDIO, pid: 300, language: 'fra' }
  const steady = new SteadyTracks({ ...POLICY, policy: 'all' })
  steady.push(program(programOf(VIDEO, AUDIO, second)))
  const video = (sec: number) => steady.push(unit(videoUnit(FROM + sec * SEC, { key: true })))
  video(0)
  for (const track of [AUDIO, second]) steady.push(unit({ ...audioUnit(FROM), track }))
  video(1)
  for (let sec = 1; sec < 40_000; sec++) steady.push(unit(audioUnit(FROM + sec * SEC)))
  const most = Math.ceil((10 * SEC) / AUDIO_UNIT_TICKS) + 3
  for (const sec of [40_000, 10_000, -20_000]) {
    const { length } = video(sec)
    t.ok(length <= most, `${length} outputs at ${sec} s`)
  }
})

t.test('a change of format makes no more than 10 s of silence', async (t) => {
  const most = Math.ceil((10 * SEC) / AUDIO_UNIT_TICKS) + 2
  const second: Track = { ...AUDIO, pid: 300, language: 'fra' }
  const steady = new SteadyTracks({ ...POLICY, policy: 'all' })
  const push = (value: PesUnit) =>
    steady
      .push(unit(value))
      .filter((output) => output.type !== 'unit' || output.unit.track !== VIDEO).length
  const video = (sec: number) => push(videoUnit(FROM + sec * SEC, { key: true }))
  steady.push(program(programOf(VIDEO, AUDIO, second)))
  video(0)
  for (const track of [AUDIO, second]) push({ ...audioUnit(FROM), track })
  const other: Track = { ...MONO, pid: second.pid }
  steady.push(program(programOf(VIDEO, AUDIO, other), true))
  push({ ...audioUnit(FROM + AUDIO_UNIT_TICKS), track: other })
  for (let sec = 1; sec < 4000; sec++) push(audioUnit(FROM + sec * SEC))
  const length = video(4000)
  t.ok(length <= most, `${length} outputs behind another track`)
  steady.reset()
  steady.push(layout)
  let max = 0
  for (let sec = 0; sec < 300; sec += 0.5) {
    const track = sec % 2 < 1 ? AUDIO : MONO
    steady.push(program(programOf(VIDEO, track), true))
    max = Math.max(max, push({ ...audioUnit(FROM), track }), video(sec))
  }
  t.ok(max <= most, `${max} outputs where the times of the audio stand still`)
})

/** Video without the frames from one index to another, and audio all the time. */
function paused(video: readonly PesUnit[], from: number, to: number) {
  const away = video.toSpliced(from, to - from)
  const audio = audioUnits(FROM, 127)
  const units = interleave({ units: away }, { units: audio, delayTicks: 9000 })
  return { away, audio, outputs: [layout, ...units.map(unit)] }
}

t.test('video that stays away beside audio is the GOP so far until it is back', async (t) => {
  const SENT = 170
  for (const [reorderFrames, back, partSec] of [
    [0, 420],
    [2, 420],
    // Within a GOP.
    [0, 391],
    [2, 391],
    [0, 391, 0.2],
    [2, 391, 0.2],
  ] as const) {
    const video = videoUnits({ fromTicks: FROM, frames: 660, framesPerGop: 60, reorderFrames })
    const { away, audio, outputs } = paused(video, SENT, back)
    const { of, facts, packager, steady } = run(outputs, partSec && { partSec })
    t.same(facts, ['TRACK_SILENT'])
    t.equal(steady.droppedVideoPackets, 0)
    t.equal(packager.stats.discontinuities, 0)
    for (const name of ['main', 'cmaf-video-1', 'cmaf-audio-1']) {
      const segments = of(name)
      t.notOk(
        segments.some(({ sizeBytes }) => sizeBytes === 0),
        `${name} has no gap`,
      )
      t.ok(
        segments.every(({ independent }) => independent),
        `each segment of ${name} begins with a key frame`,
      )
      const short = segments.slice(0, -1).filter(({ durationSec }) => durationSec < 1)
      t.ok(short.length <= 1, `${name} has one short segment before the video is back`)
    }
    const sent = new Set(away.map(({ ptsTicks }) => ptsTicks))
    t.equal(
      of('main').reduce((sum, { videoFrames }) => sum + videoFrames, 0),
      away.length,
      'repetitions are no frames',
    )
    const meter = new RenditionMeter()
    for (const segment of of('main')) meter.add(segment, 2)
    t.equal(meter.summary?.frameRate, 30)
    const times = videoTimesOf(of('main'))
    t.same(
      times.filter((ticks) => sent.has(ticks)),
      [...sent],
      'nothing is dropped',
    )
    const repeated = times.filter((ticks) => !sent.has(ticks))
    const gop = SENT % 60
    const awayTicks = (back - SENT) * 3000
    const count = Math.ceil(awayTicks / (SEC / 2))
    t.same(
      repeated,
      Array.from({ length: count * gop }, (_, index) => {
        const repetition = Math.floor(index / gop)
        return video[SENT]!.ptsTicks + (repetition * SEC) / 2 + (index % gop)
      }),
    )
    const samples = of('cmaf-video-1').flatMap(({ bytes }) => readSamples(bytes))
    t.equal(samples.length, away.length + repeated.length)
    t.ok(
      samples.every(({ decodeTicks, durationTicks, compositionOffset }, index) => {
        const next = samples[index + 1]
        const isContinuous = next === undefined || decodeTicks + durationTicks === next.decodeTicks
        return isContinuous && compositionOffset === reorderFrames * 3000
      }),
      'without holes',
    )
    const heard = samplesOf(of('cmaf-audio-1')).filter((silent) => !silent).length
    // What begins before the first picture is presented is dropped.
    t.equal(heard, audio.length * 8 - Math.ceil((reorderFrames * 3000) / 1920))
  }
})

t.test('slides without key frames are in segments that begin with one', async (t) => {
  const slides = Array.from({ length: 5 }, (_, index) =>
    videoUnit(FROM + index * 5 * SEC, { key: index === 0 }),
  )
  const audio = audioUnits(FROM, 147)
  const { of, packager } = run([
    layout,
    ...interleave({ units: slides }, { units: audio, delayTicks: 9000 }).map(unit),
  ])
  t.equal(packager.stats.discontinuities, 0)
  for (const name of ['main', 'cmaf-video-1']) {
    t.ok(of(name).every(({ independent }) => independent))
    const usual = of(name).filter(({ durationSec }) => durationSec >= 1.8 && durationSec < 2.5)
    t.ok(usual.length >= of(name).length - 2, `${usual.length} of ${of(name).length} of ${name}`)
  }
  const times = videoTimesOf(of('main'))
  t.same(
    slides.filter(({ ptsTicks }) => !times.includes(ptsTicks)),
    [],
  )
})

t.test('video that comes in turns with as much audio is not repeated', async (t) => {
  for (const turnSec of [1.8, 2, 3, 4]) {
    const video = videoUnits({ fromTicks: FROM, frames: 720, framesPerGop: 60 })
    const audio = audioUnits(FROM, 140)
    const turnOf = ({ dtsTicks }: PesUnit) => Math.floor((dtsTicks - FROM) / (turnSec * SEC))
    const turns = [...video, ...audio].toSorted((a, b) => turnOf(a) - turnOf(b))
    const { of } = run([layout, ...turns.map(unit)])
    t.same(
      videoTimesOf(of('main')),
      video.map(({ ptsTicks }) => ptsTicks),
      `${turnSec} s`,
    )
  }
})

t.test('video that was late is waited for as long again', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 1800, framesPerGop: 60 })
  const audio = audioUnits(FROM, 351)
  const turnOf = ({ dtsTicks }: PesUnit) => Math.floor((dtsTicks - FROM) / (6 * SEC))
  const turns = [...video, ...audio].toSorted((a, b) => turnOf(a) - turnOf(b))
  const { of } = run([layout, ...turns.map(unit)])
  const published = new Set(videoTimesOf(of('main')))
  const late = video.filter(({ ptsTicks }) => !published.has(ptsTicks))
  t.ok(
    late.every(({ ptsTicks }) => ptsTicks < FROM + 12 * SEC),
    'once',
  )
})

t.test('a pause of 3 s is no discontinuity, and all of its audio is heard', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 480, framesPerGop: 60 }).toSpliced(150, 90)
  const audio = audioUnits(FROM, 93)
  const { of, packager } = run([
    layout,
    ...interleave({ units: video }, { units: audio, delayTicks: 9000 }).map(unit),
  ])
  t.equal(packager.stats.discontinuities, 0)
  t.equal(packager.stats.droppedAudioPackets, 0)
  const times = new Set(videoTimesOf(of('main')))
  t.same(
    video.filter(({ ptsTicks }) => !times.has(ptsTicks)),
    [],
  )
})

t.test('slides behind a long frame are in segments of the usual length', async (t) => {
  const slideSec = [0, 1.9, 6.9, 8.8, 13.8, 15.7, 20.7]
  const slides = slideSec.map((sec, index) => videoUnit(FROM + sec * SEC, { key: index === 0 }))
  const { of } = run([
    layout,
    ...interleave({ units: slides }, { units: audioUnits(FROM, 140), delayTicks: 9000 }).map(unit),
  ])
  const short = of('main').filter(({ durationSec }) => durationSec < 0.5)
  t.ok(short.length <= 1, short.map(({ durationSec }) => durationSec).join())
})

t.test('repetitions, which are later than the video, move no date', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 270, framesPerGop: 15 })
  const units = interleave({ units: video }, { units: audioUnits(FROM, 176), delayTicks: 9000 })
  const { of } = run([layout, ...units.map(unit)], { isPaced: true })
  const [first, ...others] = of('main')
  t.ok(others.length > 12)
  for (const { startTicks, programDateTimeMs } of others) {
    const mediaMs = ((startTicks - first!.startTicks) / SEC) * 1000
    t.equal(Math.round(programDateTimeMs - first!.programDateTimeMs - mediaMs), 0)
  }
})
