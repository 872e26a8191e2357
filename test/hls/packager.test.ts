import t from 'tap'
import { Packager, type PackagerOptions, type PackagerOutput } from '../../src/hls/packager.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { slabBytesFor } from '../../src/mpegts/mux/slab-pool.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import type { Track } from '../../src/mpegts/track.ts'
import { demux, programsOf, readFixture, unitsOf } from '../mpegts/demux.ts'
import { pesPacket, TsBuilder, tsPacket } from '../mpegts/ts-builder.ts'
import { adtsFrames } from '../support/access-units.ts'
import { createRandom } from '../support/random.ts'
import {
  continuityFaults,
  readPackets,
  readPat,
  readPmt,
  readPtsTicks,
} from '../support/ts-reader.ts'
import {
  AUDIO,
  CLIP_START_TICKS,
  AUDIO_UNIT_TICKS,
  VIDEO,
  interleave,
  moved,
  videoUnit,
  videoUnits,
  program,
  programOf,
  audioUnit,
  audioUnits,
  unit,
  videoClip,
} from './source.ts'

const MAX_SLAB_BYTES = slabBytesFor(Infinity)

const SEC = 90_000
const WALL_MS = Date.UTC(2026, 0, 1)

interface Result {
  readonly packager: Packager
  readonly segments: readonly Segment[]
  /** Target durations, with the number of segments before each. */
  readonly targets: readonly { readonly targetSec: number; readonly segments: number }[]
  /** Codes of facts, each once, in the order of their first report. */
  readonly facts: readonly string[]
}

type Step =
  | DemuxerOutput
  | { type: 'discontinuity' }
  | { type: 'settle' }
  | { type: 'end' }
  | { type: 'wall'; wallMs: number }

/** Runs a packager over outputs; the wall clock only advances in steps. */
function run(steps: readonly Step[], options: Partial<PackagerOptions> = {}): Result {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, ...options })
  let wallMs = WALL_MS
  const outputs = steps.flatMap((step): readonly PackagerOutput[] => {
    if (step.type === 'discontinuity') return packager.discontinuity()
    if (step.type === 'settle') return packager.settle()
    if (step.type === 'end') return packager.end()
    if (step.type !== 'wall') return packager.push(step, wallMs)
    wallMs = step.wallMs
    return []
  })
  return {
    packager,
    segments: outputs.flatMap((output) => (output.type === 'segment' ? output.segment : [])),
    targets: outputs.flatMap((output, index) => {
      const isSegment = ({ type }: PackagerOutput) => type === 'segment'
      const segments = outputs.slice(0, index).filter(isSegment).length
      return output.type === 'target' ? { targetSec: output.targetSec, segments } : []
    }),
    facts: [
      ...new Set(outputs.flatMap((output) => (output.type === 'fact' ? output.fact.code : []))),
    ],
  }
}

const END: Step = { type: 'end' }

const AUDIO_VIDEO = program(programOf(VIDEO, AUDIO))
const durations = (segments: readonly Segment[]) =>
  segments.map(({ durationSec }) => Math.round(durationSec * 1000) / 1000)

/** PTS of the video or audio units in each segment, in order of arrival. */
const timesOf = (segments: readonly Segment[], pid: number) =>
  segments.map(({ bytes }) => readPtsTicks(readPackets(bytes), pid))

const ptsOf = (units: readonly PesUnit[]) => units.map(({ ptsTicks }) => ptsTicks)

t.test(
  'a segment is PAT, PMT, key frame, then whole PES packets (RFC 8216bis 3.1.1)',
  async (t) => {
    const video = videoUnits({ frames: 180, framesPerGop: 60 })
    const audio = audioUnits(CLIP_START_TICKS, 35)
    const units = interleave({ units: video }, { units: audio, delayTicks: 20_000 })
    const { segments, facts } = run([AUDIO_VIDEO, ...units.map(unit), END])
    t.same(facts, [])
    t.same(
      segments.map(({ uri, mediaSequence, videoFrames }) => [uri, mediaSequence, videoFrames]),
      [
        ['e-0.ts', 0, 60],
        ['e-1.ts', 1, 60],
        ['e-2.ts', 2, 60],
      ],
    )
    for (const { bytes, independent, discontinuity, tracks } of segments) {
      const [pat, pmt, key] = readPackets(bytes)
      t.equal(pat!.pid, 0)
      const [association, ...others] = readPat(pat!)
      t.same(others, [])
      t.equal(pmt!.pid, association!.pmtPid)
      t.match(readPmt(pmt!), {
        pcrPid: VIDEO.pid,
        streams: [{ pid: VIDEO.pid }, { pid: AUDIO.pid }],
      })
      t.ok(
        key!.pid === VIDEO.pid && key!.unitStart && key!.payload.includes(Buffer.from([1, 0x65])),
      )
      t.ok(independent)
      t.notOk(discontinuity)
      t.same(tracks, [VIDEO, AUDIO])
    }
    const packets = readPackets(Buffer.concat(segments.map(({ bytes }) => bytes)))
    t.same(continuityFaults(packets), [], 'continuity counters run on (RFC 8216bis 3)')
    t.same(
      readPtsTicks(packets, VIDEO.pid),
      ptsOf(video),
      'all video frames are published in order',
    )
    t.same(readPtsTicks(packets, AUDIO.pid), ptsOf(audio), 'all audio units are published in order')
    const payloads = (pid: number) =>
      Buffer.concat(packets.filter((packet) => packet.pid === pid).map(({ payload }) => payload))
    const sent = Buffer.concat(video.flatMap(({ chunks }) => chunks))
    t.ok(
      payloads(VIDEO.pid).equals(Buffer.concat(readPackets(sent).map(({ payload }) => payload))),
      'no byte of the video changed',
    )
  },
)

t.test('the input may be overwritten once it was pushed', async (t) => {
  const video = videoUnits({ frames: 61, framesPerGop: 60 })
  const early = audioUnits(CLIP_START_TICKS + SEC, 3)
  const kept = [...video, ...early].map(({ chunks }) => Buffer.concat(chunks))
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
  packager.push(AUDIO_VIDEO, WALL_MS)
  const outputs = [...early, ...video].flatMap((value) => {
    const made = packager.push(unit(value), WALL_MS)
    for (const chunk of value.chunks) chunk.fill(0)
    return made
  })
  const first = [...outputs, ...packager.end()].find(({ type }) => type === 'segment')
  t.ok(first?.type === 'segment' && first.segment.bytes.length > 376)
  const bytes = first?.type === 'segment' ? first.segment.bytes : Buffer.alloc(0)
  t.same(
    readPtsTicks(readPackets(bytes), AUDIO.pid),
    readPtsTicks(readPackets(Buffer.concat(kept.slice(61))), AUDIO.pid),
  )
})

t.test('cuts at the first key frame after segmentSec', async (t) => {
  const cases: [frames: number, framesPerGop: number, segmentSec: number, expected: number[]][] = [
    [240, 60, 2, [2, 2, 2, 2]],
    [240, 30, 2, [2, 2, 2, 2]],
    [240, 45, 2, [3, 3, 2]],
    [240, 58, 2, [1.933, 1.933, 1.933, 1.933, 0.267]],
    [240, 60, 4, [4, 4]],
  ]
  for (const [frames, framesPerGop, segmentSec, expected] of cases) {
    const { segments } = run([...videoClip({ frames, framesPerGop }), END], { segmentSec })
    t.same(durations(segments), expected, `GOP of ${framesPerGop}, segmentSec ${segmentSec}`)
  }
})

t.test('EXTINF comes from presentation times', async (t) => {
  const ntsc = { frames: 180, framesPerGop: 60, frameTicks: 3003, reorderFrames: 2 }
  const firstTicks = CLIP_START_TICKS + 2 * 3003
  t.same(
    run([...videoClip(ntsc), END]).segments.map(({ startTicks, endTicks }) => [
      startTicks - firstTicks,
      endTicks - firstTicks,
    ]),
    [
      [0, 180_180],
      [180_180, 360_360],
      [360_360, 540_540],
    ],
  )
  t.same(
    run([...videoClip(ntsc), END]).segments.map(({ durationSec }) => durationSec),
    [2.002, 2.002, 2.002],
    'the last segment lasts one frame longer than its last timestamp',
  )
  const uneven = videoUnits({ frames: 121, framesPerGop: 60 }).map((value, index) => ({
    ...value,
    ptsTicks: value.ptsTicks + (index % 60 === 0 ? (index / 60) * 90 : 0),
  }))
  t.same(
    durations(run([program(programOf(VIDEO)), ...uneven.map(unit), END]).segments).slice(0, 2),
    [2.001, 2.001],
  )
})

t.test('TARGETDURATION is fixed by the third segment, within the limits set', async (t) => {
  const cases: [framesPerGop: number, frameTicks: number, targetSec: number][] = [
    [60, 3000, 2],
    [60, 3003, 2],
    [102, 3000, 3],
    [105, 3000, 4],
    [250, 3000, 8],
    [400, 3000, 10],
  ]
  for (const [framesPerGop, frameTicks, targetSec] of cases) {
    const { targets } = run([...videoClip({ frames: 1800, framesPerGop, frameTicks }), END])
    t.same(targets, [{ targetSec, segments: 3 }], `GOP of ${framesPerGop}`)
  }
})

t.test('a GOP that outlasts TARGETDURATION is cut between access units', async (t) => {
  const short = videoUnits({ frames: 180, framesPerGop: 60 })
  const long = videoUnits({
    fromTicks: CLIP_START_TICKS + 6 * SEC,
    frames: 360,
    framesPerGop: 200,
    reorderFrames: 0,
  })
  const all = [...short, ...long]
  const { segments, facts, packager } = run([program(programOf(VIDEO)), ...all.map(unit), END])
  t.same(durations(segments), [2, 2, 2, 2.467, 2.467, 1.733, 2.467, 2.467, 0.4])
  t.same(
    segments.map(({ independent }) => independent),
    [true, true, true, true, false, false, true, false, false],
  )
  t.same(facts, ['GOP_TOO_LONG'])
  t.equal(packager.stats.forcedCuts, 4)
  t.same(
    segments.map(({ videoFrames }) => videoFrames),
    [60, 60, 60, 74, 74, 52, 74, 74, 12],
  )
  t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(all), 'no video frame is lost or repeated')
  const packets = readPackets(Buffer.concat(segments.map(({ bytes }) => bytes)))
  t.same(continuityFaults(packets), [])
  for (const { bytes } of segments) {
    const [pat, pmt, first] = readPackets(bytes)
    t.same([pat!.pid, pmt!.pid, first!.pid, first!.unitStart], [0, 0x1000, VIDEO.pid, true])
  }
})

t.test('the first key frame after a cut inside a GOP starts a segment', async (t) => {
  const gops = [60, 60, 60, 78, 42, 60]
  const video = gops.flatMap((frames, index) => {
    const before = gops.slice(0, index).reduce((sum, count) => sum + count, 0)
    const fromTicks = CLIP_START_TICKS + before * 3000
    return videoUnits({ fromTicks, frames, framesPerGop: frames })
  })
  const { segments } = run([program(programOf(VIDEO)), ...video.map(unit), END])
  t.same(durations(segments), [2, 2, 2, 2.467, 0.133, 1.4, 2])
  t.same(
    segments.map(({ independent }) => independent),
    [true, true, true, true, false, true, true],
  )
})

t.test('cuts at a key frame where the next one would come too late', async (t) => {
  const cases: [framesPerGop: number, segmentSec: number, maxSegmentSec: number, sec: number][] = [
    [45, 2, 2, 1.5],
    [120, 10, 10, 8],
  ]
  for (const [framesPerGop, segmentSec, maxSegmentSec, sec] of cases) {
    const clip = videoClip({ frames: 480, framesPerGop, reorderFrames: 2 })
    const { segments, facts } = run([...clip, END], { segmentSec, maxSegmentSec })
    const wholeOnes = segments.slice(0, -1)
    t.ok(
      wholeOnes.every(({ durationSec }) => Math.abs(durationSec - sec) < 0.001),
      durations(segments).join(' '),
    )
    t.ok(segments.every(({ independent }) => independent))
    t.same(facts, [])
    const sent = clip.flatMap((output) => (output.type === 'unit' ? output.unit : []))
    t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(sent))
  }
})

t.test('a GOP a little over TARGETDURATION stays whole', async (t) => {
  const short = videoUnits({ frames: 180, framesPerGop: 60 })
  const longer = videoUnits({ fromTicks: CLIP_START_TICKS + 6 * SEC, frames: 74, framesPerGop: 74 })
  const { segments, facts } = run([
    program(programOf(VIDEO)),
    ...[...short, ...longer].map(unit),
    END,
  ])
  t.same(durations(segments), [2, 2, 2, 2.467])
  t.same(facts, [])
})

t.test('one frame per second makes no segment exceed TARGETDURATION', async (t) => {
  const { segments } = run([
    ...videoClip({ frames: 6, framesPerGop: 2, frameTicks: SEC }),
    ...videoUnits({
      fromTicks: CLIP_START_TICKS + 6 * SEC,
      frames: 9,
      framesPerGop: 9,
      frameTicks: SEC,
    }).map(unit),
    END,
  ])
  t.same(durations(segments), [2, 2, 2, 2, 2, 2, 2, 1])
})

t.test('nothing leaves before the first random access point', async (t) => {
  const pan = videoUnits({ frames: 200, framesPerGop: 200 }).slice(140)
  const video = videoUnits({
    fromTicks: CLIP_START_TICKS + 200 * 3000,
    frames: 60,
    framesPerGop: 60,
  })
  const audio = audioUnits(CLIP_START_TICKS + 140 * 3000, 20)
  const units = interleave({ units: [...pan, ...video] }, { units: audio, delayTicks: 20_000 })
  const { segments, packager } = run([AUDIO_VIDEO, ...units.map(unit), END])
  t.equal(segments.length, 1)
  t.same(timesOf(segments, VIDEO.pid), [ptsOf(video)])
  const startTicks = CLIP_START_TICKS + 200 * 3000
  const carried = ptsOf(audio).filter((ticks) => ticks >= startTicks - 0.25 * SEC)
  t.same(timesOf(segments, AUDIO.pid), [carried], 'audio continues up to the first video frame')
  t.equal(packager.stats.packetsBeforeStart, 60)
  t.equal(packager.stats.droppedAudioPackets, 20 - carried.length)
})

t.test('reports that no key frame arrives', async (t) => {
  const { segments, facts } = run([
    program(programOf(VIDEO)),
    ...videoUnits({ frames: 400, framesPerGop: 400 }).slice(1).map(unit),
    END,
  ])
  t.same(segments, [])
  t.same(facts, ['NO_KEY_FRAME'])
})

t.test(
  'an encoder that leaves before its first key frame is not blamed for the next',
  async (t) => {
    const early = videoUnits({ frames: 60, framesPerGop: 60 }).slice(1)
    const { facts } = run([
      program(programOf(VIDEO)),
      ...early.map(unit),
      { type: 'discontinuity' },
      unit(videoUnit(CLIP_START_TICKS + 1000 * SEC)),
      unit(videoUnit(CLIP_START_TICKS + 1000 * SEC + 3000, { key: true })),
      END,
    ])
    t.same(facts, [])
  },
)

t.test('audio without video starts at its first frame and is cut at audio frames', async (t) => {
  const audio = audioUnits(CLIP_START_TICKS, 50)
  const { segments } = run([program(programOf(AUDIO)), ...audio.map(unit), END])
  t.same(durations(segments), [1.877, 1.877, 1.877, 1.877, 1.024])
  t.ok(segments.every(({ independent, videoFrames }) => independent && videoFrames === 0))
  t.same(timesOf(segments, AUDIO.pid).flat(), ptsOf(audio))
})

t.test('a damaged key frame starts no segment and is dropped', async (t) => {
  const video = videoUnits({ frames: 180, framesPerGop: 60 }).map((value, index) =>
    index === 60 ? { ...value, damaged: true } : value,
  )
  const { segments, packager } = run([program(programOf(VIDEO)), ...video.map(unit), END])
  t.same(durations(segments), [4, 2])
  t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(video).toSpliced(60, 1))
  t.equal(packager.stats.damagedPackets, 1)
  t.equal(
    run([
      program(programOf(VIDEO)),
      unit(videoUnit(0, { key: true, damaged: true })),
      unit(videoUnit(3000)),
      END,
    ]).segments.length,
    0,
    'and starts no stream',
  )
})

t.test('damaged audio is dropped, damaged video other than key frames is kept', async (t) => {
  const video = videoUnits({ frames: 60, framesPerGop: 60 }).map((value, index) =>
    index === 30 ? { ...value, damaged: true } : value,
  )
  const audio = audioUnits(CLIP_START_TICKS, 8).map((value, index) =>
    index === 4 ? { ...value, damaged: true } : value,
  )
  const units = interleave({ units: video }, { units: audio })
  const { segments, packager } = run([AUDIO_VIDEO, ...units.map(unit), END])
  t.same(timesOf(segments, VIDEO.pid), [ptsOf(video)])
  t.same(timesOf(segments, AUDIO.pid), [ptsOf(audio).toSpliced(4, 1)])
  t.equal(packager.stats.damagedPackets, 1)
})

t.test('early audio waits for its video, so that no segment starts in silence', async (t) => {
  const video = videoUnits({ frames: 180, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 35)
  const units = interleave({ units: video, delayTicks: 1.5 * SEC }, { units: audio })
  const { segments, packager } = run([AUDIO_VIDEO, ...units.map(unit), END])
  const jumps = [1, 2].map((n) => CLIP_START_TICKS + n * 2 * SEC)
  t.same(timesOf(segments, AUDIO.pid), [
    ptsOf(audio).filter((ticks) => ticks < jumps[0]!),
    ptsOf(audio).filter((ticks) => ticks >= jumps[0]! && ticks < jumps[1]!),
    ptsOf(audio).filter((ticks) => ticks >= jumps[1]!),
  ])
  t.equal(packager.stats.droppedAudioPackets, 0)
})

t.test('late audio is placed at once and nothing waits for it', async (t) => {
  const video = videoUnits({ frames: 180, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 35)
  const units = interleave({ units: video }, { units: audio, delayTicks: 0.7 * SEC })
  const { segments } = run([AUDIO_VIDEO, ...units.map(unit), END])
  t.same(timesOf(segments, AUDIO.pid).flat(), ptsOf(audio))
  t.equal(segments.length, 3)
})

t.test('audio with a stray timestamp delays nothing', async (t) => {
  const video = videoUnits({ frames: 120, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 23)
  const wrong = audio.map((value, index) =>
    index === 5 ? audioUnit(value.ptsTicks + 1000 * SEC) : index === 9 ? audioUnit(0) : value,
  )
  const units = interleave(
    { units: video },
    { units: audio.map((value, index) => ({ ...wrong[index]!, dtsTicks: value.dtsTicks })) },
  )
  const { segments, packager } = run([AUDIO_VIDEO, ...units.map(unit), END])
  t.same(timesOf(segments, AUDIO.pid).flat(), ptsOf(audio).toSpliced(9, 1).toSpliced(5, 1))
  t.equal(packager.stats.droppedAudioPackets, 2)
})

t.test('audio on another clock than the video is dropped, and reported', async (t) => {
  const video = videoUnits({ frames: 1800, framesPerGop: 60 })
  for (const skewSec of [1000, -1000, 15, -9]) {
    const audio = audioUnits(CLIP_START_TICKS, 340)
    const skewed = audio.map((value) => ({ ...value, ptsTicks: value.ptsTicks + skewSec * SEC }))
    const units = interleave({ units: video }, { units: skewed })
    const { facts, segments } = run([AUDIO_VIDEO, ...units.map(unit), END])
    const isLeftOut = Math.abs(skewSec) === 1000
    t.same(facts, isLeftOut ? ['AUDIO_OUT_OF_STEP'] : [], `${skewSec} s`)
    t.equal(timesOf(segments, AUDIO.pid).flat().length > 0, !isLeftOut)
    t.equal(segments.length, 30)
  }
})

t.test('audio without video is queued within bounds', async (t) => {
  const start = [AUDIO_VIDEO, unit(videoUnit(CLIP_START_TICKS, { key: true }))]
  const many = Array.from({ length: 3000 }, (_, index) => audioUnit(CLIP_START_TICKS + index * 100))
  const { segments, packager } = run([...start, ...many.map(unit), END], {
    maxSegmentBytes: 20_000,
  })
  t.equal(segments.length, 1)
  t.ok(segments[0]!.bytes.length <= 20_000)
  const { droppedAudioPackets, oversizePackets } = packager.stats
  t.ok(droppedAudioPackets + oversizePackets > 2000, 'what has no place is dropped and counted')
})

t.test('continues without a video track that never sends', async (t) => {
  const audio = audioUnits(CLIP_START_TICKS, 60)
  const { segments, facts } = run([AUDIO_VIDEO, ...audio.map(unit), END])
  t.same(facts, ['TRACK_SILENT'])
  t.same(timesOf(segments, AUDIO.pid).flat(), ptsOf(audio), 'no audio unit is lost')
  t.match(segments[0], { tracks: [AUDIO], discontinuity: false, mediaSequence: 0 })
  t.same(
    readPmt(readPackets(segments[0]!.bytes)[1]!).streams.map(({ pid }) => pid),
    [AUDIO.pid],
    'players must not wait for it',
  )
  const patient = audioUnits(CLIP_START_TICKS, 29)
  t.same(run([AUDIO_VIDEO, ...patient.map(unit), END]).segments, [], 'it is waited for for 5 s')
})

t.test('continues without an audio track that never sends', async (t) => {
  const video = videoUnits({ frames: 420, framesPerGop: 60, reorderFrames: 2 })
  const late = audioUnits(CLIP_START_TICKS + 9 * SEC, 24)
  const units = interleave({ units: video }, { units: late, delayTicks: 20_000 })
  const { segments, facts } = run([AUDIO_VIDEO, ...units.map(unit), END])
  t.same(facts, ['TRACK_SILENT'])
  t.same(
    segments.map(({ tracks, discontinuity }) => [tracks.length, discontinuity]),
    [
      [2, false],
      [2, false],
      [2, false],
      [1, true],
      [1, false],
      [2, true],
      [2, false],
    ],
    'from the next key frame on, and so it comes back',
  )
  t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(video), 'no video frame is lost')
})

/** AAC of the PMT in which the demuxer has found no frame. */
const { parameters: _, ...UNREAD } = AUDIO

/** PES packets of one AAC frame's duration each, with these payloads. */
function unreadUnits(payloads: readonly Uint8Array[]): PesUnit[] {
  return payloads.map((payload, index) => {
    const ptsTicks = CLIP_START_TICKS + index * 1920
    const { bytes } = new TsBuilder().unit(
      AUDIO.pid,
      pesPacket(payload, { ptsTicks, streamId: 0xc0 }),
    )
    const times = { ptsTicks, dtsTicks: ptsTicks }
    const content = { chunks: [bytes], sizeBytes: bytes.length, payload: Buffer.from(payload) }
    return { ...audioUnit(0), track: UNREAD, ...content, ...times }
  })
}

t.test('AAC without a frame is not published, and is silence', async (t) => {
  const video = videoUnits({ frames: 600, framesPerGop: 60 })
  const random = createRandom(1)
  const kinds = {
    zeros: () => Buffer.alloc(300),
    noise: () => random.bytes(300),
    'headers alone': () => adtsFrames(1, 300).subarray(0, 7),
  }
  for (const [kind, payload] of Object.entries(kinds)) {
    const audio = unreadUnits(Array.from({ length: 700 }, payload))
    const late = audioUnits(CLIP_START_TICKS + 15 * SEC, 30)
    const units = interleave({ units: video }, { units: [...audio, ...late], delayTicks: 20_000 })
    const sent = program(programOf(VIDEO, UNREAD))
    const { segments, facts, packager } = run([sent, ...units.map(unit), END])
    t.same(facts, ['TRACK_SILENT'], kind)
    t.same(
      segments.map(({ tracks }) => tracks.length),
      [2, 2, 2, 1, 1, 1, 1, 1, 2, 2],
      kind,
    )
    const published = timesOf(segments, AUDIO.pid).flat()
    t.ok(published.length > 0 && published.every((pts) => pts >= late[0]!.ptsTicks), kind)
    t.ok(packager.stats.droppedAudioPackets >= audio.length, kind)
    t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(video), kind)
  }
})

t.test('AAC with a frame in no PES packet whole is published', async (t) => {
  const bytes = adtsFrames(470, 300)
  const payloads = Array.from({ length: 470 }, (_, index) =>
    bytes.subarray(index === 0 ? 0 : index * 300 - 200, (index + 1) * 300 - 200),
  )
  const video = videoUnits({ frames: 300, framesPerGop: 60 })
  const units = interleave({ units: video }, { units: unreadUnits(payloads), delayTicks: 20_000 })
  const sent = program(programOf(VIDEO, UNREAD))
  const { segments, facts } = run([sent, ...units.map(unit), END])
  t.same(facts, [])
  t.ok(timesOf(segments, AUDIO.pid).flat().length >= 470 - 8192 / 300 - 1)
})

/** A PES packet that arrives at the time of its media. */
const inTime = (value: PesUnit): Step[] => [
  { type: 'wall', wallMs: WALL_MS + (value.dtsTicks - CLIP_START_TICKS) / 90 },
  unit(value),
]

/** Differences between the dates of segments and the arrival of their media of more than 0.5 s. */
const datesOff = (segments: readonly Segment[]) =>
  segments
    .map(({ startTicks, programDateTimeMs }) =>
      Math.round(programDateTimeMs - WALL_MS - (startTicks - CLIP_START_TICKS) / 90),
    )
    .filter((offMs) => Math.abs(offMs) > 500)

t.test('continues without video that stops, and with it when it resumes', async (t) => {
  const before = videoUnits({ frames: 90, framesPerGop: 60 })
  const fromTicks = CLIP_START_TICKS + 20 * SEC
  const after = videoUnits({ fromTicks, frames: 180, framesPerGop: 60 }).slice(30)
  const audio = audioUnits(CLIP_START_TICKS, 150)
  const units = interleave({ units: [...before, ...after] }, { units: audio, delayTicks: 20_000 })
  const { segments, facts } = run([AUDIO_VIDEO, ...units.flatMap(inTime), END])
  t.same(facts, ['TRACK_SILENT'])
  t.same(datesOff(segments), [], 'dates are those of the media, not of the end of the wait')
  const starts = segments.filter(({ discontinuity }) => discontinuity)
  t.same(
    starts.map(({ tracks }) => tracks),
    [[AUDIO], [VIDEO, AUDIO]],
  )
  t.same(timesOf(segments, AUDIO.pid).flat(), ptsOf(audio), 'no audio unit is lost')
  const shown = [...before, ...after.slice(30)]
  t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(shown), 'it comes back with a key frame')
})

t.test(
  'audio that waits for silent video has the dates of its arrival, if its clock jumps',
  async (t) => {
    for (const jumpSec of [-3600, 3600, -2]) {
      const from = CLIP_START_TICKS + 5000 * SEC
      const after = audioUnits(from + 12 * AUDIO_UNIT_TICKS + jumpSec * SEC, 48)
      const steps = [...audioUnits(from, 12), ...after].flatMap((value, index): Step[] => [
        { type: 'wall', wallMs: WALL_MS + (index * AUDIO_UNIT_TICKS) / 90 },
        unit(value),
      ])
      const { segments } = run([AUDIO_VIDEO, ...steps, END])
      t.ok(segments.some(({ discontinuitySequence }) => discontinuitySequence > 0))
      let mediaMs = 0
      for (const { programDateTimeMs, durationSec } of segments) {
        t.ok(Math.abs(programDateTimeMs - WALL_MS - mediaMs) < 500, `jump of ${jumpSec} s`)
        mediaMs += durationSec * 1000
      }
    }
  },
)

t.test(
  'video that starts late is a discontinuity, whether the program map changes or not',
  async (t) => {
    const audio = audioUnits(CLIP_START_TICKS, 90)
    const late = videoUnits({
      fromTicks: CLIP_START_TICKS + 9 * SEC,
      frames: 150,
      framesPerGop: 60,
    })
    const unknown = program(programOf({ ...VIDEO, parameters: undefined }, AUDIO))
    const video = late.slice(50)
    const units = interleave({ units: video }, { units: audio, delayTicks: 20_000 })
    const key = video.find(({ randomAccess }) => randomAccess)!
    const outputs = units.flatMap((value) =>
      value === key ? [AUDIO_VIDEO, unit(value)] : [unit(value)],
    )
    const { segments } = run([unknown, ...outputs, END])
    const [first, ...others] = segments.filter(({ tracks }) => tracks.length === 2)
    t.match(first, { tracks: [VIDEO, AUDIO], discontinuity: true, independent: true })
    t.notOk(others.some(({ discontinuity }) => discontinuity))
    t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(video.slice(video.indexOf(key))))
  },
)

t.test('an encoder that comes back has all its tracks awaited anew', async (t) => {
  const video = videoUnits({ frames: 60, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 12)
  const { segments } = run([
    AUDIO_VIDEO,
    ...audioUnits(CLIP_START_TICKS, 40).map(unit),
    { type: 'discontinuity' },
    AUDIO_VIDEO,
    ...interleave({ units: video }, { units: audio, delayTicks: 20_000 }).map(unit),
    END,
  ])
  t.match(segments.at(-1), { tracks: [VIDEO, AUDIO], discontinuity: true, videoFrames: 60 })
  t.equal(segments.filter(({ discontinuity }) => discontinuity).length, 1)
})

t.test('a jump of the timestamps is a discontinuity, and starts at a key frame', async (t) => {
  for (const jumpSec of [1000, 12, -1.5, -1000]) {
    const fromTicks = 2000 * SEC
    const before = videoUnits({ fromTicks, frames: 90, framesPerGop: 60 })
    const after = videoUnits({
      fromTicks: fromTicks + 2 * SEC + jumpSec * SEC,
      frames: 150,
      framesPerGop: 60,
    }).slice(30)
    const { segments, facts } = run([
      program(programOf(VIDEO)),
      ...[...before, ...after].map(unit),
      END,
    ])
    t.same(durations(segments), [2, 1, 2, 1], `${jumpSec} s`)
    t.same(
      segments.map(({ discontinuity }) => discontinuity),
      [false, false, true, false],
    )
    t.same(facts, ['TIMESTAMP_JUMP'])
    t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf([...before, ...after.slice(30)]))
    const packets = readPackets(Buffer.concat(segments.map(({ bytes }) => bytes)))
    t.same(continuityFaults(packets), [])
  }
})

t.test('audio that jumps before or after the video stays with it', async (t) => {
  for (const jumpSec of [1000, -1000]) {
    for (const delayTicks of [-20_000, 20_000]) {
      const fromTicks = 2000 * SEC
      const [first, second] = [fromTicks, fromTicks + 2 * SEC].map((from, index) => {
        const shift = index * jumpSec * SEC
        const video = videoUnits({ fromTicks: from + shift, frames: 60, framesPerGop: 60 })
        const audio = audioUnits(from + shift, 11)
        const order = (value: PesUnit) => value.dtsTicks - shift
        return [
          ...video.map((value) => ({ value, at: order(value) })),
          ...audio.map((value) => ({ value, at: order(value) + delayTicks })),
        ]
      })
      const units = [...first!, ...second!].toSorted((a, b) => a.at - b.at)
      const { segments, packager } = run([
        AUDIO_VIDEO,
        ...units.map(({ value }) => unit(value)),
        END,
      ])
      t.same(durations(segments), [2, 2])
      t.equal(packager.stats.droppedAudioPackets, 0)
      const [old, young] = timesOf(segments, AUDIO.pid)
      t.equal(old!.length + young!.length, 22, 'none is lost')
      t.ok(
        [old!, young!].every((times) => Math.max(...times) - Math.min(...times) < 2 * SEC),
        'no segment mixes the time lines',
      )
    }
  }
})

t.test('small steps back and gaps that a segment can span are no discontinuity', async (t) => {
  const video = videoUnits({ frames: 240, framesPerGop: 60 })
    .map((value, index) => (index === 30 ? videoUnit(value.dtsTicks - 0.5 * SEC) : value))
    .toSpliced(70, 30)
  const { segments, facts } = run([program(programOf(VIDEO)), ...video.map(unit), END])
  t.same(durations(segments), [2, 2, 2, 2])
  t.same(facts, [])
  t.notOk(segments.some(({ discontinuity }) => discontinuity))
})

t.test('a key frame that steps back a little leaves no segment that cannot end', async (t) => {
  const video = videoUnits({ frames: 181, framesPerGop: 60 })
  const at = (sec: number, key = false) =>
    unit(videoUnit(CLIP_START_TICKS + (4 + sec) * SEC, { key }))
  const { segments } = run([
    program(programOf(VIDEO)),
    ...video.map(unit),
    ...[at(4.2), at(3.9, true), at(6.5), at(6.55)],
    END,
  ])
  t.same(durations(segments), [2, 2, 2, 1.9, 0.333, 2.317, 0.033])
  t.equal(timesOf(segments, VIDEO.pid).flat().length, 185)
})

t.test('a change of layout is a discontinuity; a change of parameters alone is none', async (t) => {
  const first = videoUnits({ frames: 90, framesPerGop: 60 })
  const rest = videoUnits({ fromTicks: CLIP_START_TICKS + 3 * SEC, frames: 120, framesPerGop: 60 })
  const wider = { ...VIDEO, parameters: { codecString: 'avc1.640028', width: 1920, height: 1080 } }
  const changed = (layoutChanged: boolean) =>
    run([
      program(programOf({ ...VIDEO, parameters: { codecString: 'avc1.42c00d' } })),
      ...first.map(unit),
      program(programOf(wider), layoutChanged),
      ...rest.map(unit),
      END,
    ]).segments
  t.same(
    changed(true).map(({ discontinuity, durationSec, tracks }) => [
      discontinuity,
      Math.round(durationSec),
      tracks[0]?.parameters?.codecString,
    ]),
    [
      [false, 2, 'avc1.42c00d'],
      [false, 1, 'avc1.42c00d'],
      [true, 2, 'avc1.640028'],
      [false, 2, 'avc1.640028'],
    ],
  )
  t.notOk(changed(false).some(({ discontinuity }) => discontinuity))
})

t.test('other audio, or another program map, takes effect at the next key frame', async (t) => {
  const video = videoUnits({ frames: 240, framesPerGop: 60 })
  const mono = { ...AUDIO, parameters: { ...AUDIO.parameters!, channels: 1 } }
  const other = { ...mono, pid: 300 }
  const changeTicks = CLIP_START_TICKS + 2.5 * SEC
  for (const track of [mono, other, undefined]) {
    const audio = audioUnits(CLIP_START_TICKS, 46).flatMap((value) => {
      if (value.ptsTicks < changeTicks) return [value]
      return track === undefined ? [] : [moved(value, track)]
    })
    const units = interleave({ units: video }, { units: audio, delayTicks: 9000 })
    const changed = program(programOf(VIDEO, ...(track === undefined ? [] : [track])), true)
    const at = units.findIndex(({ dtsTicks }) => dtsTicks >= changeTicks)
    for (const formats of [['ts'], ['ts', 'cmaf']] as const) {
      const steps = [AUDIO_VIDEO, ...units.slice(0, at).map(unit)]
      const { segments } = run([...steps, changed, ...units.slice(at).map(unit), END], { formats })
      const main = segments.filter(({ rendition }) => rendition === 'main')
      t.same(timesOf(main, VIDEO.pid).flat(), ptsOf(video), 'no video frame is lost')
      t.same(
        main.map(({ discontinuity, tracks }) => [discontinuity, tracks[1]]),
        [
          [false, AUDIO],
          [false, AUDIO],
          [true, track],
          [false, track],
        ],
      )
      const times = timesOf(main, track?.pid ?? AUDIO.pid)
      const isBefore = (ticks: number) => ticks < changeTicks
      t.notOk(
        times[1]!.some((ticks) => !isBefore(ticks)),
        'none in a segment of the audio before',
      )
      if (track === undefined) continue
      const fromTicks = main[2]!.startTicks - AUDIO_UNIT_TICKS
      const later = ptsOf(audio).filter((ticks) => ticks > fromTicks)
      t.same(times.slice(2).flat(), later, 'all of it from the key frame on')
    }
  }
})

t.test(
  'an encoder that was lost and comes back continues the epoch after a discontinuity',
  async (t) => {
    const before = videoUnits({ frames: 75, framesPerGop: 60 })
    const after = videoUnits({ fromTicks: 5 * SEC, frames: 250, framesPerGop: 250 })
    const { segments, targets, packager } = run([
      AUDIO_VIDEO,
      ...interleave({ units: before }, { units: audioUnits(CLIP_START_TICKS + 9000, 14) }).map(
        unit,
      ),
      { type: 'discontinuity' },
      { type: 'settle' },
      AUDIO_VIDEO,
      ...after.map(unit),
      END,
    ])
    t.same(durations(segments), [2, 0.5, 2.467, 2.467, 2.467, 0.933])
    t.same(
      segments.map(({ discontinuity }) => discontinuity),
      [false, false, true, false, false, false],
    )
    t.same(
      segments.map(({ mediaSequence }) => mediaSequence),
      [0, 1, 2, 3, 4, 5],
    )
    t.same(targets, [{ targetSec: 2, segments: 2 }], 'TARGETDURATION stands')
    t.equal(timesOf(segments.slice(0, 2), AUDIO.pid).flat().length, 14, 'nothing buffered is lost')
    t.equal(packager.stats.discontinuities, 1)
    t.same(run([AUDIO_VIDEO, { type: 'discontinuity' }, ...before.map(unit), END]).segments[0], {
      ...run([AUDIO_VIDEO, ...before.map(unit), END]).segments[0],
    })
  },
)

t.test(
  'PROGRAM-DATE-TIME is anchored at each discontinuity, advances by durations and never overlaps',
  async (t) => {
    const clip = (fromTicks: number) =>
      videoUnits({ fromTicks, frames: 120, framesPerGop: 60 }).map(unit)
    const { segments } = run([
      program(programOf(VIDEO)),
      ...clip(CLIP_START_TICKS),
      { type: 'wall', wallMs: WALL_MS + 30_000 },
      { type: 'discontinuity' },
      ...clip(CLIP_START_TICKS),
      { type: 'wall', wallMs: WALL_MS - 3_600_000 },
      { type: 'discontinuity' },
      ...clip(CLIP_START_TICKS),
      END,
    ])
    t.same(
      segments.map(({ programDateTimeMs }) => programDateTimeMs - WALL_MS),
      [0, 2000, 30_000, 32_000, 34_000, 36_000],
    )
  },
)

t.test('timestamps pass the wrap of 33 bits without a discontinuity', async (t) => {
  const fromTicks = 2 ** 33 - 3 * SEC
  const video = videoUnits({ fromTicks, frames: 240, framesPerGop: 60 })
  const { segments } = run([program(programOf(VIDEO)), ...video.map(unit), END])
  t.same(durations(segments), [2, 2, 2, 2])
  t.notOk(segments.some(({ discontinuity }) => discontinuity))
  t.same(
    timesOf(segments, VIDEO.pid).flat(),
    ptsOf(video).map((ticks) => ticks % 2 ** 33),
  )
})

t.test(
  'a segment with leading pictures is independent only if they need no earlier frame',
  async (t) => {
    // The second key frame comes in time, or so early that it is cut at only when the third is too late.
    for (const [frames, options] of [
      [60, {}],
      [45, { maxSegmentSec: 2 }],
    ] as const) {
      const from = CLIP_START_TICKS + frames * 3000
      const closed = videoUnits({ frames, framesPerGop: frames, reorderFrames: 1 })
      const rest = videoUnits({ fromTicks: from, frames: 60, framesPerGop: 60, reorderFrames: 1 })
      const key = videoUnit(from, { key: true, reorderTicks: 3 * 3000 })
      const leading = { ...rest[1]!, ptsTicks: from + 2 * 3000 }
      for (const decodableLeading of [false, true]) {
        const units = [...closed, key, { ...leading, decodableLeading }, ...rest.slice(2)]
        const { segments } = run([program(programOf(VIDEO)), ...units.map(unit), END], options)
        t.same(
          segments.map(({ independent }) => independent),
          [true, decodableLeading],
        )
      }
    }
  },
)

t.test('a segment that begins behind a key frame has the parameter sets', async (t) => {
  let keys = 0
  const sent = demux(readFixture('demo')).filter((output) => {
    if (output.type !== 'unit' || output.unit.track.kind !== 'video') return true
    return !output.unit.randomAccess || ++keys === 1
  })
  const { segments } = run([...sent, END], { segmentSec: 1, maxSegmentSec: 1 })
  t.strictSame(
    segments.map(({ independent }) => independent),
    [true, false, false, false, false, false],
  )
  // Players that begin here.
  const players = segments.map(({ bytes }) => demux(bytes))
  const parametersOf = (outputs: readonly DemuxerOutput[]) =>
    programsOf(outputs)
      .at(-1)!
      .tracks.map(({ parameters }) => parameters)
  t.strictSame(
    players.map(parametersOf),
    segments.map(() => parametersOf(sent)),
  )
  const framesOf = (outputs: readonly DemuxerOutput[]) =>
    unitsOf(outputs).flatMap(({ track, dtsTicks }) => (track.kind === 'video' ? dtsTicks : []))
  t.strictSame(players.flatMap(framesOf), framesOf(sent))
  t.strictSame(continuityFaults(segments.flatMap(({ bytes }) => readPackets(bytes))), [])
})

t.test('two fields in two PES packets are one frame', async (t) => {
  const fields = videoUnits({ frames: 240, framesPerGop: 120, frameTicks: 1500 }).map(
    (value, index) => ({ ...value, startsFrame: index % 2 === 0 }),
  )
  const { segments } = run([program(programOf(VIDEO)), ...fields.map(unit), END])
  t.same(
    segments.map(({ videoFrames, durationSec }) => [videoFrames, durationSec]),
    [
      [60, 2],
      [60, 2],
    ],
  )
  t.same(timesOf(segments, VIDEO.pid).flat(), ptsOf(fields))
})

t.test('a segment never holds more bytes than allowed', async (t) => {
  const clip = videoClip({ frames: 300, framesPerGop: 60, frameBytes: 10_000 })
  const { segments, facts } = run([...clip, END], { maxSegmentBytes: 200_000 })
  t.ok(segments.every(({ bytes }) => bytes.length <= 200_000))
  t.equal(
    segments.reduce((sum, { videoFrames }) => sum + videoFrames, 0),
    300,
  )
  t.same(facts, ['SEGMENT_TOO_LARGE'])
  const huge = [
    ...clip.slice(0, 31),
    unit(videoUnit(CLIP_START_TICKS + 90_000, { sizeBytes: 300_000 })),
  ]
  const { packager } = run([...huge, END], { maxSegmentBytes: 200_000 })
  t.equal(packager.stats.oversizePackets, 1)
})

t.test('segments take their bytes in memory and the rest of one slab', async (t) => {
  const sizes = [8000, 300, 4000, 4100, 3900, 60]
  const video = sizes.flatMap((frameBytes, index) =>
    videoUnits({
      fromTicks: CLIP_START_TICKS + index * 2 * SEC,
      frames: 60,
      framesPerGop: 60,
      frameBytes,
    }),
  )
  const { segments } = run([program(programOf(VIDEO)), ...video.map(unit), END])
  t.equal(segments.length, sizes.length)
  const chunks = segments.flatMap((segment) => segment.chunks)
  t.ok(chunks.every(({ length }) => length % 188 === 0 && length <= MAX_SLAB_BYTES))
  const memory = new Set(chunks.map(({ buffer }) => buffer))
  const takenBytes = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0)
  const sizeBytes = segments.reduce((sum, segment) => sum + segment.sizeBytes, 0)
  t.ok(takenBytes < sizeBytes + MAX_SLAB_BYTES, `${takenBytes} for ${sizeBytes} bytes`)
  t.same(
    segments.map(({ bytes }) => bytes.length),
    segments.map((segment) => segment.sizeBytes),
  )
})

const EAC3: Track = { ...AUDIO, pid: 258, streamType: 0x87, codec: 'eac3' }
const DATA: Track = {
  ...{ pid: 262, streamType: 0x06, kind: 'data', codec: 'unknown' },
  descriptors: Buffer.from('\x05\x04KLVA'),
}
const ID3: Track = {
  ...{ pid: 263, streamType: 0x15, kind: 'data', codec: 'unknown' },
  descriptors: Buffer.from('\x26\x0d\xff\xffID3 \xffID3 \x00\x0f', 'latin1'),
}
const SPLICES: Track = { ...DATA, pid: 261, streamType: 0x86 }

t.test('the main rendition is the first video, the default audio and ID3', async (t) => {
  const others = [EAC3, { ...AUDIO, pid: 259 }, { ...VIDEO, pid: 260 }, SPLICES, DATA, ID3]
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
  const [left] = packager.push(program(programOf(EAC3, VIDEO, AUDIO, ...others.slice(1))), WALL_MS)
  const fact = { code: 'TRACKS_LEFT_OUT', tracks: [EAC3, DATA], tooMany: false }
  t.match(left, { type: 'fact', fact })
  t.match(packager.facts, [fact], 'as long as the PMT lists them')
  for (const value of videoUnits({ frames: 30, framesPerGop: 30 })) {
    packager.push(unit(value), WALL_MS)
    for (const track of others) packager.push(unit(moved(value, track)), WALL_MS)
  }
  const [output] = packager.end()
  const segment = output?.type === 'segment' ? output.segment : undefined
  t.same(segment?.tracks, [VIDEO, AUDIO, ID3])
  const packets = readPackets(segment!.bytes)
  t.same(new Set(packets.map(({ pid }) => pid)), new Set([0, 0x1000, VIDEO.pid, ID3.pid]))
  t.same(continuityFaults(packets), [])
  t.equal(readPmt(packets[1]!).pcrPid, 0x1fff, 'the clock was on a track left out')
})

t.test('MPEG audio is not in CMAF once its frames are of layer II', async (t) => {
  const { parameters: _, ...unread } = AUDIO
  const mpeg: Track = { ...unread, codec: 'mp2', streamType: 0x03 }
  const formats = ['ts', 'cmaf'] as const
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, formats })
  packager.push(program(programOf(VIDEO, mpeg)), WALL_MS)
  t.same(packager.facts, [], 'before its first frame, it may be MP3')
  const layerII = { ...mpeg, parameters: { codecString: 'mp4a.40.33' } }
  packager.push(program(programOf(VIDEO, layerII)), WALL_MS)
  t.match(packager.facts, [{ code: 'TRACKS_NOT_IN_CMAF', tracks: [layerII] }])
})

t.test('settle completes the segments that wait for tracks that lag', async (t) => {
  const french = { ...AUDIO, pid: 259, language: 'fra' }
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
  const video = videoUnits({ frames: 181, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 35)
  const inFrench = { units: audio.map((value) => moved(value, french)) }
  const uris = (outputs: readonly PackagerOutput[]) =>
    outputs.flatMap((output) => (output.type === 'segment' ? output.segment.uri : []))
  const media = interleave({ units: video }, { units: audio }, inFrench).map(unit)
  const outputs = [program(programOf(VIDEO, AUDIO, french)), ...media].flatMap((output) =>
    packager.push(output, WALL_MS),
  )
  t.same(uris(outputs).toSorted(), ['e-0.ts', 'e-1.ts', 'e-2.ts', 'e-a2-0.ts', 'e-a2-1.ts'])
  const settled = packager.settle()
  t.same(uris(settled), ['e-a2-2.ts'])
  const [segment] = settled
  t.ok(segment?.type === 'segment' && segment.segment.sizeBytes > 0)
})

t.test(
  'audio in a language that the main codec lacks is dropped (RFC 8216bis 4.4.6.1.1)',
  async (t) => {
    const english = { ...AUDIO, language: 'eng' }
    const dolby: Track = { ...english, streamType: 0x81, codec: 'ac3' }
    const inEnglish = { ...dolby, pid: 258 }
    const inFrench = { ...dolby, pid: 259, language: 'fra' }
    const all = programOf(VIDEO, inFrench, inEnglish, english)
    const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
    t.match(packager.push(program(all), WALL_MS), [
      { type: 'fact', fact: { code: 'AUDIO_CODECS_DIFFER', tracks: [inFrench] } },
      { type: 'renditions', renditions: ['main', 'audio-2'] },
    ])
    const { segments, facts } = run([program(all), END], { tracks: 'all' })
    t.same([segments, facts], [[], []], 'unless all tracks are wanted')
  },
)

t.test('audio in another language replaces a main codec that stays silent', async (t) => {
  const german: Track = { ...AUDIO, pid: 258, streamType: 0x81, codec: 'ac3', language: 'deu' }
  const video = videoUnits({ frames: 600, framesPerGop: 60 })
  const audio = audioUnits(CLIP_START_TICKS, 110).map((value) => moved(value, german))
  const units = interleave({ units: video }, { units: audio, delayTicks: 20_000 })
  const late = audioUnit(CLIP_START_TICKS + 20 * SEC)
  for (const silent of [AUDIO, { ...AUDIO, language: 'eng' }]) {
    const sent = program(programOf(VIDEO, silent, german))
    const { segments, packager } = run([sent, ...units.map(unit)])
    const main = segments.filter(({ rendition }) => rendition === 'main')
    t.same(main.at(-1)!.tracks, [VIDEO, german])
    t.match(packager.facts, [{ code: 'TRACK_SILENT', track: silent }])
    t.equal(packager.facts.length, 1)
    const outputs = packager.push(unit({ ...late, track: silent }), WALL_MS)
    const differing = { type: 'fact', fact: { code: 'AUDIO_CODECS_DIFFER', tracks: [german] } }
    if (silent.language === 'eng') t.match(outputs, [differing])
  }
})

t.test('audio without a language is in no group of its own', async (t) => {
  const english = { ...AUDIO, language: 'eng' }
  const [tagged, untagged] = [english, AUDIO].map((track): Track => ({
    ...track,
    pid: 258,
    streamType: 0x81,
    codec: 'ac3',
  }))
  for (const [aac, ac3] of [
    [english, untagged!],
    [AUDIO, tagged!],
  ] as const) {
    const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
    t.same(packager.push(program(programOf(VIDEO, ac3, aac)), WALL_MS), [
      { type: 'renditions', renditions: ['main', 'audio-2'] },
    ])
  }
})

t.test('HLS_TRACKS=all publishes every track of PES packets', async (t) => {
  const tracks = [VIDEO, EAC3, SPLICES, DATA, ID3]
  const steps = videoUnits({ frames: 60, framesPerGop: 60 }).flatMap((value) =>
    tracks.map((track) => unit(moved(value, track))),
  )
  const all = run([program(programOf(...tracks)), ...steps, END], { tracks: 'all' })
  t.same(all.facts, [])
  t.same(all.segments[0]!.tracks, [VIDEO, EAC3, DATA, ID3])
  const packets = readPackets(all.segments[0]!.bytes)
  for (const { pid } of [VIDEO, EAC3, DATA, ID3]) {
    t.equal(readPtsTicks(packets, pid).length, 60, `PID ${pid}`)
  }
  const many = Array.from({ length: 40 }, (_, index) => ({ ...DATA, pid: 300 + index }))
  const { segments, facts } = run([program(programOf(VIDEO, ...many)), ...steps.slice(0, 1), END], {
    tracks: 'all',
  })
  t.same(facts, ['TRACKS_LEFT_OUT'], 'a PMT has one packet')
  t.equal(readPmt(readPackets(segments[0]!.bytes)[1]!).streams.length, 32)
})

t.test('packets that carry only a PCR are kept', async (t) => {
  const clockPid = 0x1000
  const value = { ...programOf(VIDEO), pcrPid: clockPid }
  const clock = (ticks: number, pid = clockPid): DemuxerOutput => ({
    type: 'packets',
    pid,
    chunks: [tsPacket({ pid, counter: ticks & 15, adaptation: Buffer.alloc(6) })],
  })
  const { segments } = run([
    program(value),
    clock(0),
    ...videoUnits({ frames: 60, framesPerGop: 60 }).flatMap((frame) => [
      unit(frame),
      clock(frame.dtsTicks),
      clock(frame.dtsTicks, 300),
    ]),
    END,
  ])
  const packets = readPackets(segments[0]!.bytes)
  t.equal(packets.filter(({ pid }) => pid === clockPid).length, 60)
  t.equal(packets.filter(({ pid }) => pid === 300).length, 0)
  t.same(continuityFaults(packets), [])
  t.equal(packets[1]!.pid, clockPid + 1, 'the PMT moves out of the way of a PID of the source')
  t.equal(readPmt(packets[1]!).pcrPid, clockPid)
})

t.test('refuses settings that contradict each other', async (t) => {
  for (const [segmentSec, maxSegmentSec] of [
    [0, 10],
    [4, 3],
    [2, 2.5],
    [Number.NaN, 10],
  ] as const) {
    t.throws(() => new Packager({ epoch: 'e', segmentSec, maxSegmentSec }), RangeError)
  }
})

t.test('a pause of the audio does not end its track', async (t) => {
  const video = videoUnits({ frames: 900, framesPerGop: 60 })
  const audio = [...audioUnits(CLIP_START_TICKS, 5), ...audioUnits(CLIP_START_TICKS + 14 * SEC, 80)]
  const { segments } = run([
    AUDIO_VIDEO,
    ...interleave({ units: video }, { units: audio, delayTicks: AUDIO_UNIT_TICKS }).map(unit),
    END,
  ])
  t.same(timesOf(segments, AUDIO.pid).flat(), ptsOf(audio))
})
