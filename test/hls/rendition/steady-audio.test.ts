import t from 'tap'
import { SILENT_BLOCKS } from '../../../src/codec/adts.ts'
import { Packager } from '../../../src/hls/packager.ts'
import { SteadyAudio } from '../../../src/hls/rendition/steady-audio.ts'
import type { Segment } from '../../../src/hls/store/segment.ts'
import type { DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
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

/** Publishes outputs of the demuxer in both formats. */
function run(outputs: readonly DemuxerOutput[]) {
  const steady = new SteadyAudio(POLICY)
  const packager = new Packager({
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, formats: POLICY.formats },
  })
  const segments: Segment[] = []
  const facts = new Set<string>()
  const take = (results: ReturnType<Packager['push']>) => {
    for (const result of results) if (result.type === 'segment') segments.push(result.segment)
    if (!steady.begun && segments.length > 0) steady.begin(packager.tracks)
  }
  for (const output of outputs) {
    for (const each of steady.push(output)) take(packager.push(each, 0))
    for (const { code } of steady.facts) facts.add(code)
  }
  take(packager.end())
  const of = (name: string) => segments.filter(({ rendition }) => rendition === name)
  return { of, facts: [...facts], packager, steady }
}

const ptsOf = (segments: readonly Segment[]) =>
  segments.flatMap(({ bytes }) => readPtsTicks(readPackets(bytes), AUDIO.pid))

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

const shiftSecOf = ({ facts }: SteadyAudio) =>
  facts.find((fact) => fact.code === 'AUDIO_REALIGNED')?.shiftSec ?? 0

const FROM = 2000 * SEC
const layout = program(programOf(VIDEO, AUDIO))

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

t.test('video that stays away holds its last picture', async (t) => {
  const all = videoUnits({ fromTicks: FROM, frames: 660, framesPerGop: 60 })
  // It is back in the middle of a GOP.
  const video = all.toSpliced(190, 240)
  const audio = audioUnits(FROM, 127)
  // The frame before the pause is complete with the next one.
  const sent = jumped(video, 0, 0).map((each, index) =>
    index === 189 ? { ...each, sentTicks: video[190]!.dtsTicks - 1 } : each,
  )
  const { of, facts, packager } = run([layout, ...inOrder(sent, jumped(audio, 0, 0))])
  t.same(facts, ['TRACK_SILENT'])
  t.equal(packager.stats.discontinuities, 0)
  for (const name of ['main', 'cmaf-video-1', 'cmaf-audio-1'])
    t.notOk(
      of(name).some(({ sizeBytes }) => sizeBytes === 0),
      `${name} has no gap`,
    )
  const times = of('main').flatMap(({ bytes }) => readPtsTicks(readPackets(bytes), VIDEO.pid))
  t.equal(video.filter(({ ptsTicks }) => times.includes(ptsTicks)).length, video.length - 1)
  t.ok(
    times.some((ticks) => ticks > video[189]!.ptsTicks + 7 * SEC && ticks < video[190]!.ptsTicks),
  )
  t.same(
    times,
    times.toSorted((a, b) => a - b),
    'none is presented after a frame that was sent later',
  )
  const steps = times.slice(1).map((ticks, index) => ticks - times[index]!)
  t.ok(Math.max(...steps) < SEC, 'so that segments and parts are published meanwhile')
  t.same(samplesOf(of('cmaf-audio-1')).filter((silent) => !silent).length, audio.length * 8)
})

t.test('nothing is added to video of 1 frame in a second or in 2.5 s', async (t) => {
  for (const step of [30, 75]) {
    const video = videoUnits({ fromTicks: FROM, frames: 20 * step, framesPerGop: 2 * step }).filter(
      (_, index) => index % step === 0,
    )
    // Each frame is complete with the next one.
    const sent = jumped(video, 0, 0).map((each, index) => {
      return { ...each, sentTicks: (video[index + 1]?.dtsTicks ?? Infinity) - 1 }
    })
    const audio = audioUnits(FROM, (20 * step) / 5)
    const { of } = run([layout, ...inOrder(sent, jumped(audio, 0, 0))])
    const times = of('main').flatMap(({ bytes }) => readPtsTicks(readPackets(bytes), VIDEO.pid))
    const known = new Set(video.map(({ ptsTicks }) => ptsTicks))
    t.ok(times.length > 10)
    t.same(
      times.filter((ticks) => !known.has(ticks)),
      [],
    )
  }
})

t.test('video in another order than it is sent is not held', async (t) => {
  const video = videoUnits({ fromTicks: FROM, frames: 660, framesPerGop: 60, reorderFrames: 1 })
  const units = interleave(
    { units: video.toSpliced(190, 240) },
    { units: audioUnits(FROM, 127), delayTicks: 9000 },
  )
  const { of, facts } = run([layout, ...units.map(unit)])
  t.same(facts, [])
  t.equal(of('main').filter(({ tracks }) => tracks.length === 1).length > 0, true)
})
