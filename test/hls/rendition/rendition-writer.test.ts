import t, { type Test } from 'tap'
import {
  Packager,
  type PackagerOptions,
  type PackagerOutput,
  type PackagerStats,
} from '../../../src/hls/packager.ts'
import type { Segment } from '../../../src/hls/store/segment.ts'
import type { DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import type { Track } from '../../../src/mpegts/track.ts'
import { adtsFrames } from '../../support/access-units.ts'
import { continuityFaults, readPackets, readPmt, readPtsTicks } from '../../support/ts-reader.ts'
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
  audioUnits,
  unit,
  type ClipOptions,
} from '../source.ts'

const SEC = 90_000
const WALL_MS = Date.UTC(2026, 0, 1)

const SMALL: Track = { ...VIDEO, pid: 260 }
const FRENCH: Track = { ...AUDIO, pid: 261, language: 'fra' }
const ALL = programOf(VIDEO, AUDIO, SMALL, FRENCH)

type Step = DemuxerOutput | 'discontinuity'

function run(steps: readonly Step[], options: Partial<PackagerOptions> = {}) {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, ...options })
  const outputs: PackagerOutput[] = []
  for (const step of steps) {
    outputs.push(
      ...(step === 'discontinuity' ? packager.discontinuity() : packager.push(step, WALL_MS)),
    )
  }
  outputs.push(...packager.end())
  const segments = outputs.flatMap((output) => (output.type === 'segment' ? output.segment : []))
  return {
    packager,
    outputs,
    segments,
    of: (rendition: string) => segments.filter((segment) => segment.rendition === rendition),
    /** Codes of facts, each once, in the order of their first report. */
    facts: [
      ...new Set(outputs.flatMap((output) => (output.type === 'fact' ? output.fact.code : []))),
    ],
  }
}

const on = (track: Track, units: readonly PesUnit[]) => units.map((value) => moved(value, track))
const ptsOf = (units: readonly PesUnit[]) => units.map(({ ptsTicks }) => ptsTicks)
const sentIn = (segments: readonly Segment[], { pid }: Track) =>
  segments.map(({ bytes }) => readPtsTicks(readPackets(bytes), pid))

/** Checks that each follower has the segments of the main rendition, in order and in step. */
function checkStep(t: Test, { segments, of }: ReturnType<typeof run>): void {
  const main = of('main')
  for (const name of new Set(segments.map(({ rendition }) => rendition))) {
    const own = of(name)
    const shared = ({ mediaSequence, startTicks, endTicks, ...segment }: Segment) => [
      ...[mediaSequence, startTicks, endTicks, segment.durationSec],
      ...[segment.programDateTimeMs, segment.discontinuity, segment.discontinuitySequence],
    ]
    t.same(own.map(shared), main.slice(main.length - own.length).map(shared), `${name} in step`)
    const packets = own.flatMap(({ bytes }) => readPackets(bytes))
    t.same(continuityFaults(packets), [], `${name}: continuity counters run on`)
    for (const { bytes, tracks } of own.filter((segment) => segment.bytes.length > 0)) {
      const [pat, pmt] = readPackets(bytes)
      t.equal(pat!.pid, 0)
      t.same(
        readPmt(pmt!).streams.map(({ pid }) => pid),
        tracks.map(({ pid }) => pid),
      )
    }
  }
}

/** Four tracks of the same clip, each delayed as encoders do. */
function clip(options: ClipOptions, sec: number) {
  const { fromTicks = CLIP_START_TICKS } = options
  const video = videoUnits(options)
  const audio = audioUnits(fromTicks, Math.floor((sec * SEC) / AUDIO_UNIT_TICKS))
  const lanes = { video, audio, small: on(SMALL, video), french: on(FRENCH, audio) }
  const units = interleave(
    { units: lanes.video },
    { units: lanes.audio, delayTicks: 20_000 },
    { units: lanes.small, delayTicks: 1000 },
    { units: lanes.french, delayTicks: 60_000 },
  )
  return { ...lanes, units, steps: units.map(unit) }
}

t.test('further video and audio tracks make renditions in step (RFC 8216bis 6.2.4)', async (t) => {
  const media = clip({ frames: 240, framesPerGop: 60, reorderFrames: 2 }, 8)
  const result = run([program(ALL), ...media.steps])
  t.same(result.facts, [])
  t.same(result.outputs[0], {
    type: 'renditions',
    renditions: ['main', 'video-2', 'audio-2'],
  })
  checkStep(t, result)
  t.same(
    result.segments.map(({ uri }) => uri),
    [0, 1, 2, 3].flatMap((msn) => [`e-${msn}.ts`, `e-v2-${msn}.ts`, `e-a2-${msn}.ts`]),
  )
  const [main, small, french] = ['main', 'video-2', 'audio-2'].map(result.of)
  t.same(main![0]!.tracks, [VIDEO, AUDIO])
  t.same(small![0]!.tracks, [SMALL, AUDIO])
  t.same(french![0]!.tracks, [FRENCH])
  t.same(sentIn(small!, SMALL), sentIn(main!, VIDEO), 'cut at the same key frames')
  t.same(sentIn(small!, SMALL).flat(), ptsOf(media.small), 'all video frames in order')
  t.same(sentIn(small!, AUDIO).flat(), ptsOf(media.audio), 'with the default audio')
  t.same(sentIn(french!, FRENCH).flat(), ptsOf(media.french), 'all audio units in order')
  for (const [index, pts] of sentIn(french!, FRENCH).entries()) {
    const { startTicks, endTicks } = french![index]!
    t.ok(pts.every((ticks) => ticks >= startTicks - AUDIO_UNIT_TICKS && ticks < endTicks))
  }
  t.ok(result.segments.every(({ independent }) => independent))
  t.same(
    small!.map(({ videoFrames }) => videoFrames),
    [60, 60, 60, 60],
  )
  t.equal(result.packager.stats.otherDroppedPackets, 0)
})

t.test(
  'a variant may consist of fields, or have leading pictures that need no earlier frame',
  async (t) => {
    const video = videoUnits({ frames: 120, framesPerGop: 60, reorderFrames: 3 })
    for (const decodableLeading of [false, true]) {
      const small = on(
        SMALL,
        videoUnits({ frames: 240, framesPerGop: 120, frameTicks: 1500, reorderFrames: 6 }),
      )
        .map((value, index) => ({ ...value, startsFrame: index % 2 === 0 }))
        .map((value, index) =>
          index === 122 ? { ...value, ptsTicks: value.ptsTicks - 6000, decodableLeading } : value,
        )
      const result = run([
        program(programOf(VIDEO, SMALL)),
        ...interleave({ units: video }, { units: small, delayTicks: 10 }).map(unit),
      ])
      checkStep(t, result)
      t.same(
        result.of('video-2').map(({ videoFrames, independent }) => [videoFrames, independent]),
        [
          [60, true],
          [60, decodableLeading],
        ],
      )
      t.equal(sentIn(result.of('video-2'), SMALL).flat().length, 240)
    }
  },
)

t.test('the input may be overwritten once it was pushed', async (t) => {
  const media = clip({ frames: 90, framesPerGop: 60 }, 3)
  const expected = run([program(ALL), ...media.steps])
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
  const outputs = [program(ALL), ...media.steps].flatMap((step) => {
    const made = [...packager.push(step, WALL_MS)]
    if (step.type === 'unit') for (const chunk of step.unit.chunks) chunk.fill(0)
    return made
  })
  const made = [...outputs, ...packager.end()]
  t.ok(
    made.every((output, index) => {
      const other = expected.outputs[index]
      return (
        output.type !== 'segment' ||
        (other?.type === 'segment' && output.segment.bytes.equals(other.segment.bytes))
      )
    }),
  )
})

t.test('a track that sends nothing has gaps, and delays the others for at most 1 s', async (t) => {
  const media = clip({ frames: 300, framesPerGop: 60 }, 10)
  const steps = media.units.filter(({ track }) => track !== FRENCH).map(unit)
  const result = run([program(ALL), ...steps])
  checkStep(t, result)
  t.same(
    result.of('audio-2').map(({ bytes }) => bytes.length),
    [0, 0, 0, 0, 0],
  )
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
  const lagsSec: number[] = []
  let ticks = 0
  for (const step of [program(ALL), ...steps]) {
    if (step.type === 'unit' && step.unit.track === VIDEO) ticks = step.unit.dtsTicks
    for (const output of packager.push(step, WALL_MS)) {
      if (output.type !== 'segment' || output.segment.rendition !== 'audio-2') continue
      lagsSec.push((ticks - output.segment.endTicks) / SEC)
    }
  }
  t.equal(lagsSec.length, 4)
  t.ok(
    lagsSec.every((lag) => lag >= 1 && lag < 1.1),
    `${lagsSec.join()} s`,
  )
})

t.test(
  'a track that stops and resumes has gaps between, and its sequence numbers continue',
  async (t) => {
    const media = clip({ frames: 480, framesPerGop: 60 }, 16)
    const isOff = ({ dtsTicks }: PesUnit) =>
      dtsTicks >= CLIP_START_TICKS + 4 * SEC && dtsTicks < CLIP_START_TICKS + 9 * SEC
    const steps = media.units.filter((value) => value.track !== SMALL || !isOff(value)).map(unit)
    const result = run([program(ALL), ...steps])
    checkStep(t, result)
    t.same(
      result
        .of('video-2')
        .map(({ bytes, independent }) => (bytes.length === 0 ? 'gap' : independent)),
      [true, true, 'gap', 'gap', 'gap', true, true, true],
      'it comes back with a key frame',
    )
    t.same(result.facts, [])
  },
)

t.test(
  'a variant with key frames elsewhere than the main video is not independent, and reported',
  async (t) => {
    const video = videoUnits({ frames: 300, framesPerGop: 60 })
    const small = on(SMALL, videoUnits({ frames: 300, framesPerGop: 50 }))
    const result = run([
      program(programOf(VIDEO, SMALL)),
      ...interleave({ units: video }, { units: small, delayTicks: 100 }).map(unit),
    ])
    checkStep(t, result)
    t.same(
      result.of('video-2').map(({ independent }) => independent),
      [true, false, false, false, false],
    )
    t.same(result.facts, ['VARIANTS_NOT_ALIGNED'])
    t.same(sentIn(result.of('video-2'), SMALL).flat(), ptsOf(small), 'nothing is lost')
  },
)

t.test('key frames half a frame off the boundary are aligned with it', async (t) => {
  const video = videoUnits({ frames: 300, framesPerGop: 60 })
  for (const offsetTicks of [-1500, 1500, -1, 1]) {
    const fromTicks = CLIP_START_TICKS + offsetTicks
    const small = on(SMALL, videoUnits({ fromTicks, frames: 300, framesPerGop: 60 }))
    const result = run([
      program(programOf(VIDEO, SMALL)),
      ...interleave({ units: video }, { units: small }).map(unit),
    ])
    checkStep(t, result)
    t.ok(
      result
        .of('video-2')
        .every(({ independent, videoFrames }) => independent && videoFrames === 60),
    )
    t.same(result.facts, [])
  }
})

t.test('one key frame lost on the way is no misalignment', async (t) => {
  const media = clip({ frames: 300, framesPerGop: 60 }, 10)
  const steps = media.units.map((value) =>
    unit({ ...value, damaged: value === media.small[120] || value === media.french[3] }),
  )
  const result = run([program(ALL), ...steps])
  checkStep(t, result)
  t.same(result.facts, [])
  t.same(
    result.of('video-2').map(({ independent }) => independent),
    [true, true, false, true, true],
  )
  t.equal(sentIn(result.of('video-2'), SMALL).flat().length, 299, 'a decoder had better not see it')
  t.equal(result.packager.stats.otherDroppedPackets, 2)
})

for (const [title, jumpSec] of [
  ['ahead', 1000],
  ['back', -1000],
  ['ahead a little', 30],
  ['back a little', -5],
] as const) {
  t.test(`timestamps that jump ${title} take all renditions along`, async (t) => {
    const before = clip({ fromTicks: 2000 * SEC, frames: 180, framesPerGop: 60 }, 6)
    const after = clip({ fromTicks: (2006 + jumpSec) * SEC, frames: 180, framesPerGop: 60 }, 6)
    const result = run([program(ALL), ...before.steps, ...after.steps])
    checkStep(t, result)
    const small = result.of('video-2')
    t.same(
      small.map(({ discontinuity }) => discontinuity),
      [false, false, false, true, false, false],
    )
    t.same(sentIn(small, SMALL), sentIn(result.of('main'), VIDEO))
    t.same(sentIn(small, SMALL).flat(), [...ptsOf(before.small), ...ptsOf(after.small)])
    t.same(sentIn(result.of('audio-2'), FRENCH).flat(), [
      ...ptsOf(before.french),
      ...ptsOf(after.french),
    ])
    t.ok(small.every(({ independent }) => independent))
  })
}

t.test(
  'an open segment is flushed when the encoder leaves, and the return continues the playlist',
  async (t) => {
    const before = clip({ frames: 150, framesPerGop: 60 }, 5)
    const after = clip({ frames: 120, framesPerGop: 60 }, 4)
    const result = run([
      program(ALL),
      ...before.steps,
      'discontinuity',
      program(ALL),
      ...after.steps,
    ])
    checkStep(t, result)
    const small = result.of('video-2')
    t.same(
      small.map(({ discontinuitySequence }) => discontinuitySequence),
      [0, 0, 0, 1, 1],
    )
    t.same(sentIn(small, SMALL).flat(), [...ptsOf(before.small), ...ptsOf(after.small)])
  },
)

t.test(
  'a rendition has gaps while the layout lacks its track, and continues with another track',
  async (t) => {
    const first = clip({ frames: 120, framesPerGop: 60 }, 4)
    const second = clip({ fromTicks: CLIP_START_TICKS + 4 * SEC, frames: 120, framesPerGop: 60 }, 4)
    const third = clip({ fromTicks: CLIP_START_TICKS + 8 * SEC, frames: 120, framesPerGop: 60 }, 4)
    const german: Track = { ...FRENCH, pid: 300, language: 'deu' }
    const result = run([
      program(programOf(VIDEO, AUDIO)),
      ...first.steps,
      program(programOf(VIDEO, AUDIO, FRENCH), true),
      ...second.steps,
      program(programOf(VIDEO, AUDIO), true),
      ...third.steps,
      program(programOf(VIDEO, AUDIO, german), true),
      ...clip(
        { fromTicks: CLIP_START_TICKS + 12 * SEC, frames: 120, framesPerGop: 60 },
        4,
      ).units.map((value) => unit(value.track === FRENCH ? moved(value, german) : value)),
    ])
    checkStep(t, result)
    t.same(
      result
        .of('audio-2')
        .map(({ mediaSequence, bytes, tracks }) => [
          mediaSequence,
          bytes.length > 0,
          tracks.map(({ language }) => language).join(),
        ]),
      [
        [2, true, 'fra'],
        [3, true, 'fra'],
        [4, false, ''],
        [5, false, ''],
        [6, true, 'deu'],
        [7, true, 'deu'],
      ],
    )
    t.same(
      result.outputs.flatMap((output) => (output.type === 'renditions' ? [output.renditions] : [])),
      [['main'], ['main', 'audio-2'], ['main'], ['main', 'audio-2']],
    )
  },
)

t.test(
  'the default audio is the most widely understood; without video it is the reference track',
  async (t) => {
    const ac3: Track = { ...AUDIO, pid: 258, streamType: 0x81, codec: 'ac3' }
    const units = audioUnits(CLIP_START_TICKS, 60)
    const result = run([
      program(programOf(ac3, AUDIO)),
      ...units.flatMap((value) => [unit(moved(value, ac3)), unit(value)]),
    ])
    checkStep(t, result)
    t.same(result.of('main')[0]!.tracks, [AUDIO])
    t.same(result.of('audio-2')[0]!.tracks, [ac3])
    t.same(sentIn(result.of('audio-2'), ac3), sentIn(result.of('main'), AUDIO))
  },
)

t.test('a default audio track that stays silent is replaced, and not listed twice', async (t) => {
  const media = clip({ frames: 600, framesPerGop: 60 }, 20)
  const steps = media.units.filter(({ track }) => track !== AUDIO).map(unit)
  const result = run([program(ALL), ...steps])
  checkStep(t, result)
  t.same(result.of('main').at(-1)!.tracks, [VIDEO, FRENCH])
  t.same(result.of('video-2').at(-1)!.tracks, [SMALL, FRENCH])
  t.same(
    result.outputs.flatMap((output) => (output.type === 'renditions' ? [output.renditions] : [])),
    [
      ['main', 'video-2', 'audio-2'],
      ['main', 'video-2'],
    ],
  )
  t.ok(result.of('audio-2').at(-1)!.bytes.length > 0, 'its playlist continues')
})

t.test('no counter decreases when an encoder reconnects with other tracks', async (t) => {
  const options = { formats: ['cmaf'], tracks: 'all' } as const
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, ...options })
  let before = packager.stats
  const check = () => {
    for (const [name, count] of Object.entries(packager.stats))
      t.ok(count >= before[name as keyof PackagerStats], name)
    before = packager.stats
  }
  const layouts = [[VIDEO], [VIDEO, FRENCH, AUDIO], [VIDEO], [AUDIO], [VIDEO, AUDIO], [FRENCH]]
  for (const [index, tracks] of layouts.entries()) {
    const fromTicks = CLIP_START_TICKS + index * 10 * SEC
    const { units } = clip({ fromTicks, frames: 90, framesPerGop: 60 }, 3)
    const carried = units.filter(({ track }) => tracks.includes(track))
    // Audio 5 s ahead of the video has no place.
    const stray = tracks.filter(({ kind }) => kind === 'audio')
    const strays = stray.flatMap((track) => on(track, audioUnits(fromTicks + 5 * SEC, 10)))
    for (const step of [program(programOf(...tracks)), ...[...carried, ...strays].map(unit)]) {
      packager.push(step, WALL_MS)
      check()
    }
    packager.discontinuity()
    check()
  }
  t.ok(before.otherDroppedPackets > 0 && before.droppedAudioPackets > 0, JSON.stringify(before))
})

t.test('waiting units are bounded for any input', async (t) => {
  const small = on(SMALL, videoUnits({ frames: 2000, framesPerGop: 60 }))
  const value = programOf(VIDEO, SMALL)
  const kept = { maxSegmentBytes: 100_000 }
  const result = run([program(value), ...small.map(unit)], kept)
  t.same(result.segments, [], 'the main video never came')
  const { otherDroppedPackets } = result.packager.stats
  t.ok(otherDroppedPackets >= 1500, `${otherDroppedPackets} of 2000 were dropped before the end`)
  const many = run([program(value), ...Array.from({ length: 9000 }, () => unit(small[1]!))])
  t.ok(many.packager.stats.otherDroppedPackets >= 8192)
})

t.test('a unit that waits in two formats is copied once, out of the input', async (t) => {
  const packager = new Packager({
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, formats: ['ts', 'cmaf'] },
  })
  packager.push(program(programOf(VIDEO, AUDIO)), WALL_MS)
  packager.push(unit(videoUnit(CLIP_START_TICKS, { key: true })), WALL_MS)
  const { visits } = packager.placingStats
  const audio = audioUnits(CLIP_START_TICKS + SEC, 10)
  for (const value of audio) {
    const chunks = value.chunks.map((chunk) => Buffer.from(chunk))
    packager.push(unit({ ...value, chunks }), WALL_MS)
    for (const chunk of chunks) chunk.fill(0)
  }
  t.match(packager.placingStats, { visits: visits + 20, copies: 10 })
  const outputs = videoUnits({ frames: 120, framesPerGop: 30 }).flatMap((video) => [
    ...packager.push(unit(video), WALL_MS),
  ])
  const segments = [...outputs, ...packager.end()].flatMap((output) =>
    output.type === 'segment' && output.segment.rendition === 'main' ? output.segment : [],
  )
  t.same(sentIn(segments, AUDIO).flat(), ptsOf(audio))
})

t.test('all waiting units together have a limit', async (t) => {
  const packager = new Packager({
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, maxSegmentBytes: 500_000 },
  })
  packager.push(program(ALL), WALL_MS)
  packager.push(unit(videoUnit(CLIP_START_TICKS, { key: true })), WALL_MS)
  let mostBytes = 0
  for (let turn = 0; turn < 600; turn++) {
    for (const track of [AUDIO, SMALL, FRENCH]) {
      const value = moved(videoUnit(CLIP_START_TICKS + 4 * SEC, { key: true }), track)
      packager.push(unit(value), WALL_MS)
      mostBytes = Math.max(mostBytes, packager.queuedBytes)
    }
  }
  t.ok(
    mostBytes > 900_000 && mostBytes < 1_500_000,
    `${mostBytes}: two segments, beside the open one`,
  )
})

t.test('audio frames ahead of the video count while they wait, and have a limit', async (t) => {
  const packager = new Packager({
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, formats: ['cmaf'] },
  })
  packager.push(program(programOf(VIDEO, AUDIO)), WALL_MS)
  // Frames of 8 kHz last 0.13 s, so that a PES packet has 51 s of them; the first frames, of 48 kHz, begin a clock anew.
  const slow = adtsFrames(400, 8)
  for (let at = 2; at < slow.length; at += 8) slow[at] = 0x6c
  const payload = Buffer.concat([adtsFrames(4, 8), slow])
  const audio = audioUnits(CLIP_START_TICKS, 200).map((value) => ({ ...value, payload }))
  let mostBytes = 0
  for (const value of interleave(
    { units: videoUnits({ frames: 1000, framesPerGop: 1000 }) },
    { units: audio },
  )) {
    packager.push(unit(value), WALL_MS)
    mostBytes = Math.max(mostBytes, packager.queuedBytes)
  }
  const { dropped } = packager.sampleStats
  t.ok(mostBytes > 4e6 && mostBytes < 6e6, `${mostBytes} bytes`)
  t.ok(dropped > 50_000, `${dropped} of 80,000 are dropped`)
})

t.test(
  'other renditions do not wait for a main rendition whose timestamps go back or stand still',
  async (t) => {
    const clocks: [string, (index: number) => number][] = [
      ['back', (index) => 10_000 * SEC - index * 2 * SEC],
      ['still', () => 10_000 * SEC],
    ]
    for (const [name, ticksOf] of clocks) {
      const packager = new Packager({
        ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, maxSegmentBytes: 20_000 },
      })
      packager.push(program(programOf(VIDEO, AUDIO, FRENCH)), WALL_MS)
      const made = { main: 0, others: 0 }
      let mostBehind = 0
      for (let index = 0; index < 1000; index++) {
        const key = videoUnit(ticksOf(index), { key: true, sizeBytes: 1000 })
        for (const output of packager.push(unit(key), WALL_MS)) {
          if (output.type === 'segment')
            made[output.segment.rendition === 'main' ? 'main' : 'others']++
        }
        mostBehind = Math.max(mostBehind, made.main - made.others)
      }
      t.ok(made.main > 50, `${name}: ${made.main} segments`)
      t.ok(mostBehind <= 16, `${name}: ${mostBehind} behind`)
    }
  },
)
