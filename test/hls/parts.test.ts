/**
 * Parts of random sources, their playlists, and each INDEPENDENT part alone in a player.
 */
import t, { type Test } from 'tap'
import { parseMediaPlaylist, type ParsedPlaylist } from '../../src/check/playlist/media-playlist.ts'
import { formatOf, playlistUri, type Format, type RenditionName } from '../../src/hls/file-names.ts'
import { Packager, type PackagerOptions, type PackagerOutput } from '../../src/hls/packager.ts'
import { LivePresentation } from '../../src/hls/playlist/live-presentation.ts'
import type { Part } from '../../src/hls/store/segment.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import { readSamples } from '../mp4/box-tree.ts'
import { compareEdges } from '../support/house-rules.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { transmux } from '../support/transmuxer.ts'
import { FragmentChecks } from './fragment-checks.ts'
import { PartChecks } from './part-checks.ts'
import { AUDIO_FRAME_TICKS, FRENCH, createRandomSource, unitOf } from './random-source.ts'
import { AUDIO, VIDEO, program, programOf, unit } from './source.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

const SEC = 90_000

const SEEDS = rounds(40, 10_000)

/** Maximum difference in time between the first samples of renditions without parts. */
const MAX_SKEW_SEC = 0.1

const OPTIONS: PackagerOptions = {
  ...{ epoch: 'e', formats: ['cmaf'], segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 },
}

/** One source in so many is checked in full: each version of its playlists, and each INDEPENDENT part in hls.js. */
const SEEDS_PER_FULL_CHECK = 10

const FORMATS: readonly (readonly Format[])[] = [['ts', 'cmaf'], ['cmaf']]

const formatsOf = (seed: number) => FORMATS[seed % FORMATS.length]!

/** Outputs of the packager for each input of a random source. */
function* pack(
  seed: number,
  { inputs, segmentSec, partSec } = createRandomSource(seed),
): Generator<readonly PackagerOutput[]> {
  const formats = formatsOf(seed)
  const options = { segmentSec, partSec, formats, epoch: 'e', maxSegmentSec: 10 }
  const packager = new Packager({ ...options, tracks: 'all' })
  for (const input of inputs) {
    if (input === 'disconnect') yield packager.discontinuity()
    else if (input === 'settle') yield packager.settle()
    else {
      yield packager.push(input, 1e12)
      // The packager has borrowed it.
      if (input.type === 'unit') for (const chunk of input.unit.chunks) chunk.fill(0)
    }
  }
  yield packager.end()
}

/** Number of samples that were found among the PES packets of their sources. */
let samples = 0

/** @returns number of parts */
function checkParts(seed: number): number {
  const source = createRandomSource(seed)
  const outputs = [...pack(seed, source)].flat()
  const targets = outputs.filter((output) => output.type === 'target')
  if (targets.length > 1) throw new Error('PART-TARGET changed')
  const targetSec = targets[0]?.partTargetSec
  const checks = new PartChecks(targetSec)
  const fragments = new FragmentChecks(source)
  for (const output of outputs) {
    if (output.type === 'part') checks.part(output.part)
    else if (output.type === 'segment') {
      checks.segment(output.segment)
      fragments.segment(output.segment)
    }
  }
  checks.end()
  fragments.end(targetSec ?? MAX_SKEW_SEC)
  samples += fragments.samples
  return checks.parts
}

/** Checks each version of each playlist. @returns number of versions */
function checkPlaylists(seed: number): number {
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const formats = formatsOf(seed)
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments: 6, formats })
  const isFull = seed % SEEDS_PER_FULL_CHECK === 0
  // GOPs of random sources are longer than segments, and tracks come late.
  const except = ['INDEPENDENT_MISSING', 'VERSION_TOO_HIGH']
  const judges = {
    ts: new StreamJudge({ except }),
    cmaf: new StreamJudge({ lowLatency: true, except }),
  }
  const fixedLines = new Set<string>()
  let versions = 0
  let nowMs = 0
  /** 3 with parts, 1 without. */
  let lines = 0
  const names = new Set<RenditionName>()
  /** Playlists that others may report: one that has just appeared is reported with the next part. */
  const reported = new Set<string>()
  const check = () => {
    const playlists: ParsedPlaylist[] = []
    for (const name of names) {
      const uri = playlistUri(name)
      const text = presentation.files.get(uri)?.chunks.join('')
      if (text === undefined) continue
      versions++
      const format = formatOf(name)
      const hasParts = format === 'cmaf' && lines === 3
      if (hasParts) for (const line of text.match(FIXED_LINES) ?? []) fixedLines.add(line)
      else if (/EXT-X-(PART|SERVER|PRELOAD|RENDITION)/.test(text))
        throw new Error(`${uri} has parts`)
      if (fixedLines.size > lines) throw new Error(`${uri}: ${[...fixedLines].join(' ')}`)
      checkDurations(uri, text)
      if (!isFull || (format === 'cmaf' && !hasParts)) continue
      const broken = judges[format].playlist(uri, text)
      if (broken.length > 0) throw new Error(`${uri}: ${broken.join(', ')}`)
      if (!hasParts) continue
      const playlist = parseMediaPlaylist(text, `https://media.example/${uri}`)
      if (reported.has(uri)) playlists.push(playlist)
      else if (playlist.segments.length > 0) reported.add(uri)
    }
    const apart = compareEdges(
      playlists.filter(({ segments }) => segments.at(-1)!.parts.length > 0),
    )
    if (apart.length > 0) throw new Error(apart.join(', '))
  }
  for (const outputs of pack(seed)) {
    for (const output of outputs) {
      if (output.type === 'part') presentation.appendPart(output.part)
      else if (output.type === 'target') {
        presentation.setTarget(output.targetSec, output.partTargetSec)
        lines = output.partTargetSec === undefined ? 1 : 3
      } else if (output.type === 'renditions') {
        presentation.setRenditions(output.renditions)
        for (const rendition of output.renditions) names.add(rendition)
      } else if (output.type === 'segment') {
        const { segment } = output
        if (segment.rendition === [...names][0]) nowMs += segment.durationSec * 1000
        presentation.append(segment, nowMs)
      }
    }
    if (outputs.length > 0) check()
  }
  presentation.end()
  check()
  return versions
}

/** Checks that no part lasts longer than PART-TARGET, as printed, and no segment than EXT-X-TARGETDURATION. */
function checkDurations(uri: string, text: string): void {
  const numbersOf = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, it]) => Number(it))
  const [partTargetSec = 0] = numbersOf(/PART-TARGET=([\d.]+)/g)
  const [targetSec = 0] = numbersOf(/TARGETDURATION:(\d+)/g)
  const longestSec = Math.max(0, ...numbersOf(/DURATION=([\d.]+)/g))
  const longestSegmentSec = Math.round(Math.max(0, ...numbersOf(/EXTINF:([\d.]+)/g)))
  if (longestSec > partTargetSec)
    throw new Error(`${uri} has ${longestSec} s of ${partTargetSec} s`)
  if (longestSegmentSec > targetSec)
    throw new Error(`${uri} has ${longestSegmentSec} s of ${targetSec} s`)
}

const FIXED_LINES = /^#EXT-X-(PART-INF|SERVER-CONTROL|TARGETDURATION):.*/gm

/** Passes each INDEPENDENT part of video alone to hls.js. @returns number of these parts */
function playIndependentParts(seed: number): number {
  const parts = [...pack(seed)].flat().flatMap((each) => (each.type === 'part' ? [each.part] : []))
  const independent = parts.filter((part) => part.independent)
  for (const { uri, chunks, durationSec, map } of independent) {
    const bytes = Buffer.concat(chunks)
    const alone = transmux([{ bytes, durationSec, discontinuity: false }], map?.bytes)
    const isVideo = uri.startsWith('e-v')
    const isPlayable = (isVideo ? alone.videoFrames : alone.audioFrames) > 0
    if (!isPlayable || (isVideo && alone.independent !== true) || alone.complaints.length > 0)
      throw new Error(`${uri} alone: ${JSON.stringify(alone)}`)
  }
  return independent.length
}

/** @returns sum of the numbers that `check` returns for the seeds, 0 after a failure */
function sumOverSeeds(
  t: Test,
  check: (seed: number) => number,
  isChosen: (seed: number) => boolean = () => true,
): number {
  let sum = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    try {
      if (isChosen(seed)) sum += check(seed)
    } catch (error) {
      t.fail(`seed ${seed}: ${(error as Error).message}`)
      return 0
    }
  }
  return sum
}

t.test('parts of any source keep to PART-TARGET and add up to their segments', async (t) => {
  const parts = sumOverSeeds(t, checkParts)
  t.ok(parts > 10 * SEEDS, `${parts} parts`)
  t.ok(samples > 100 * SEEDS, `${samples} samples`)
})

t.test('PART-INF, SERVER-CONTROL and TARGETDURATION of any source never change', async (t) => {
  const versions = sumOverSeeds(t, checkPlaylists)
  t.ok(versions > 10 * SEEDS, `${versions} versions of playlists`)
})

t.test('an INDEPENDENT part of any source can be played alone', async (t) => {
  const isChosen = (seed: number) => seed % SEEDS_PER_FULL_CHECK === 0
  const parts = sumOverSeeds(t, playIndependentParts, isChosen)
  t.ok(parts > (10 * SEEDS) / SEEDS_PER_FULL_CHECK, `${parts} parts`)
})

t.test('a segment that a step back of the timestamps ends has all its parts', async (t) => {
  for (const backTicks of [0.1 * SEC, 0.3 * SEC, 0.9 * SEC]) {
    const packager = new Packager(OPTIONS)
    const checks = new PartChecks(0.208)
    const outputs = [...packager.push(program(programOf(VIDEO)), 1e12)]
    for (let frame = 0; frame < 400; frame++) {
      const ticks = 10 * SEC + frame * 3000 - (frame < 240 ? 0 : backTicks)
      outputs.push(...packager.push(unit(unitOf(VIDEO, ticks, { key: frame % 60 === 0 })), 1e12))
    }
    outputs.push(...packager.end())
    for (const output of outputs) {
      if (output.type === 'part') checks.part(output.part)
      else if (output.type === 'segment') checks.segment(output.segment)
    }
    t.ok(checks.parts > 40)
  }
})

t.test('a discontinuity is announced where the target leaves a gap too long', async (t) => {
  const packager = new Packager(OPTIONS)
  const outputs = [...packager.push(program(programOf(VIDEO)), 1e12)]
  for (let frame = 0; frame < 200; frame++) {
    // Below the limit of 10 s, but above the target of 2 s that the segment before the gap fixes.
    const ticks = 10 * SEC + frame * 3000 + (frame < 90 ? 0 : 9.5 * SEC)
    const key = frame % 60 === 0 || frame === 90
    outputs.push(...packager.push(unit(unitOf(VIDEO, ticks, { key })), 1e12))
  }
  const segments = outputs.flatMap((output) => (output.type === 'segment' ? [output.segment] : []))
  t.same(
    segments.map(({ discontinuity, nextDateTimeMs }) => [
      discontinuity,
      nextDateTimeMs === undefined,
    ]),
    [
      [false, false],
      [false, true],
      [true, false],
      [false, false],
    ],
  )
})

t.test(
  'parts in which no frame begins are no gaps, and have the audio of their time',
  async (t) => {
    const packager = new Packager(OPTIONS)
    const parts: Part[] = []
    const push = (output: DemuxerOutput) => {
      for (const each of packager.push(output, 1e12))
        if (each.type === 'part') parts.push(each.part)
    }
    push(program(programOf(VIDEO, AUDIO)))
    let audioTicks = SEC
    const audioUntil = (ticks: number) => {
      for (; audioTicks <= ticks; audioTicks += 5760) push(unit(unitOf(AUDIO, audioTicks)))
    }
    for (let frame = 0; frame < 150; frame++) {
      push(unit(unitOf(VIDEO, SEC + frame * 3000, { key: frame % 60 === 0 })))
      audioUntil(SEC + frame * 3000)
    }
    // Two frames a second: a screen on which little happens.
    for (let frame = 0; frame < 12; frame++) {
      const ticks = 6 * SEC + frame * 45_000
      audioUntil(ticks - 1)
      push(unit(unitOf(VIDEO, ticks, { key: frame % 4 === 0 })))
    }
    t.ok(parts.length > 30, `${parts.length} parts`)
    const samplesOf = (part: Part) => readSamples(Buffer.concat(part.chunks)).length
    const gaps = parts.filter(({ chunks }) => chunks.length === 0)
    t.same(
      gaps.map(({ uri }) => uri),
      [],
    )
    const isAudio = ({ rendition }: Part) => rendition === 'cmaf-audio-1'
    t.ok(parts.some((part) => !isAudio(part) && samplesOf(part) === 0))
    const audio = parts.filter(isAudio)
    t.ok(audio.every((part) => samplesOf(part) > 0 || part.durationSec < 0.03))
  },
)

for (const seed of [353, 516, 842, 1015, 1215, 7721, 8556]) {
  t.test(
    `parts and segments of a source that once broke a rule keep them all (seed ${seed})`,
    async (t) => {
      t.ok(checkParts(seed) > 10)
    },
  )
}

t.test('audio keeps to the target that its open segment fixes (seed 9867)', async (t) => {
  t.ok(checkPlaylists(9867) > 10)
})

t.test('renditions that appear are reported with the next part (seed 3190)', async (t) => {
  t.ok(checkPlaylists(3190) > 10)
})

for (const seed of [4725, 8622]) {
  t.test(
    `media before a frame that is lost with its encoder is in no part, nor in the segment (seed ${seed})`,
    async (t) => {
      t.ok(checkParts(seed) > 10)
    },
  )
}

/** Largest number of parts and segments of one call, by rendition, for 24 renditions of which the video is `changed`. */
function countAtOnce(changed: (value: PesUnit, frame: number) => PesUnit): number {
  const packager = new Packager({ ...OPTIONS, segmentSec: 10 })
  const audios = Array.from({ length: 24 }, (_, index) => ({ ...AUDIO, pid: 300 + index }))
  packager.push(program(programOf(VIDEO, ...audios)), 1e12)
  let max = 0
  for (let frame = 0; frame < 900; frame++) {
    const value = changed(unitOf(VIDEO, SEC + frame * 3000, { key: frame % 60 === 0 }), frame)
    const units = [value]
    if (frame % 5 === 0) {
      for (const track of audios) units.push({ ...unitOf(AUDIO, value.dtsTicks), track })
    }
    for (const each of units) {
      const outputs = packager.push(unit(each), 1e12)
      const counts = new Map<string, number>()
      for (const output of outputs) {
        if (output.type !== 'part') continue
        const { rendition } = output.part
        counts.set(rendition, (counts.get(rendition) ?? 0) + 1)
      }
      max = Math.max(max, ...counts.values())
    }
  }
  packager.end()
  return max
}

t.test('no timestamp makes more than 22 parts of a rendition at once', async (t) => {
  const since = (from: number, ticks: number) => (value: PesUnit, frame: number) => ({
    ...value,
    dtsTicks: value.dtsTicks + (frame < from ? 0 : ticks),
    ptsTicks: value.ptsTicks + (frame < from ? 0 : ticks),
  })
  t.ok(countAtOnce(since(Infinity, 0)) <= 2, 'without a jump')
  const inSegment = countAtOnce(since(720, 4 * SEC))
  t.ok(inSegment > 15 && inSegment <= 22, `${inSegment} for a gap of 4 s`)
  t.ok(countAtOnce(since(720, 9.9 * SEC)) <= 2, 'a jump of 9.9 s is a discontinuity')
  const farPts = (value: PesUnit, frame: number) =>
    frame === 719
      ? { ...value, ptsTicks: value.ptsTicks + 9 * SEC }
      : since(720, 100 * SEC)(value, frame)
  const atEnd = countAtOnce(farPts)
  t.ok(atEnd <= 22, `${atEnd} for a PTS 9 s after its DTS, and a jump`)
})

t.test('the last part of a segment appears together with the segment', async (t) => {
  const packager = new Packager(OPTIONS)
  packager.push(program(programOf(VIDEO)), 1e12)
  const calls: string[] = []
  const push = (output: DemuxerOutput) => {
    const types = packager.push(output, 1e12).map(({ type }) => type)
    if (types.includes('part')) calls.push([output.type, ...types].join(' '))
  }
  for (let frame = 0; frame < 300; frame++) {
    const next = unitOf(VIDEO, SEC + frame * 3000, { key: frame % 30 === 0 })
    const { dtsTicks, ptsTicks } = next
    push({ type: 'header', pid: VIDEO.pid, times: { dtsTicks, ptsTicks } })
    push(unit(next))
  }
  const parts = Array<string>(9).fill('header part')
  const segment = [...parts, 'unit part segment start']
  const second = [...parts, 'unit part segment target start']
  t.strictSame(calls, [...second, ...segment, ...segment, ...parts])
})

t.test('parts have the audio frames of their time, however many a PES packet has', async (t) => {
  const packager = new Packager({ ...OPTIONS, segmentSec: 1 })
  const frames: number[] = []
  const push = (output: DemuxerOutput) => {
    for (const each of packager.push(output, 1e12)) {
      if (each.type !== 'part' || each.part.rendition !== 'cmaf-audio-2') continue
      frames.push(readSamples(Buffer.concat(each.part.chunks)).length)
    }
  }
  push(program(programOf(VIDEO, AUDIO, FRENCH)))
  let audioTicks = SEC
  for (let frame = 0; frame < 300; frame++) {
    push(unit(unitOf(VIDEO, SEC + frame * 3000, { key: frame % 30 === 0 })))
    for (; audioTicks <= SEC + frame * 3000; audioTicks += 17 * AUDIO_FRAME_TICKS) {
      for (const track of [AUDIO, FRENCH]) push(unit(unitOf(track, audioTicks, { frames: 17 })))
    }
  }
  t.ok(frames.length > 30, `${frames.length} parts`)
  t.same(new Set(frames), new Set([9, 10]), '9.4 frames in 0.2 s')
})
