/**
 * Parts of random sources, their playlists, and each INDEPENDENT part alone in a player.
 */
import t, { type Test } from 'tap'
import { playlistUri } from '../../src/hls/file-names.ts'
import { Packager, type PackagerOutput } from '../../src/hls/packager.ts'
import { LivePresentation } from '../../src/hls/playlist/live-presentation.ts'
import type { Part } from '../../src/hls/store/part.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer-output.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import { createRandom } from '../support/random.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { transmux } from '../support/transmuxer.ts'
import { readPackets, readPmt } from '../support/ts-reader.ts'
import { PartChecks } from './part-checks.ts'
import { createRandomSource, unitOf } from './random-source.ts'
import { AUDIO, VIDEO, program, programOf, unit } from './source.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

const SEC = 90_000

const SEEDS = rounds(250, 20_000)

/** One source in so many is checked in full: each version of its playlists, and each INDEPENDENT part in hls.js. */
const SEEDS_PER_FULL_CHECK = 10

/** Outputs of the packager for each input of a random source. */
function* pack(seed: number): Generator<readonly PackagerOutput[]> {
  const { inputs, ...options } = createRandomSource(createRandom(seed))
  const packager = new Packager({ ...options, epoch: 'e', maxSegmentSec: 10, tracks: 'all' })
  for (const input of inputs) {
    if (input === 'disconnect') yield packager.discontinuity()
    else if (input === 'settle') yield packager.settle()
    else yield packager.push(input, 1e12)
  }
  yield packager.end()
}

/** @returns number of parts */
function checkParts(seed: number): number {
  let targetSec: number | undefined
  let targets = 0
  const checks = new PartChecks(() => targetSec)
  for (const output of [...pack(seed)].flat()) {
    if (output.type === 'part') checks.part(output.part)
    else if (output.type === 'segment') checks.segment(output.segment)
    else if (output.type === 'target') {
      targetSec = output.partTargetSec
      if (++targets > 1) throw new Error('PART-TARGET changed')
    }
  }
  checks.end()
  return checks.parts
}

/** Checks each version of each playlist. @returns number of versions */
function checkPlaylists(seed: number): number {
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments: 6 })
  const isFull = seed % SEEDS_PER_FULL_CHECK === 0
  // GOPs of random sources are longer than segments.
  const judge = new StreamJudge({ lowLatency: true, except: ['INDEPENDENT_MISSING'] })
  const fixedLines = new Set<string>()
  let versions = 0
  let nowMs = 0
  /** 3 with parts, 1 without. */
  let lines = 0
  const uris = new Set<string>()
  const check = (uri: string) => {
    const text = presentation.files.get(uri)?.chunks.join('')
    if (text === undefined) return
    versions++
    for (const line of text.match(FIXED_LINES) ?? []) fixedLines.add(line)
    if (fixedLines.size !== lines) throw new Error(`${uri}: ${[...fixedLines].join(' ')}`)
    if (!isFull || lines === 1) return
    const broken = judge.playlist(uri, text)
    if (broken.length > 0) throw new Error(`${uri}: ${broken.join(', ')}`)
  }
  for (const outputs of pack(seed)) {
    for (const output of outputs) {
      if (output.type === 'part') presentation.appendPart(output.part)
      else if (output.type === 'target') {
        presentation.setTarget(output.targetSec, output.partTargetSec)
        lines = output.partTargetSec === undefined ? 1 : 3
      } else if (output.type === 'renditions') {
        presentation.setRenditions(output.renditions)
        for (const rendition of output.renditions) uris.add(playlistUri(rendition))
      } else if (output.type === 'segment') {
        const { segment } = output
        if (segment.rendition === 'main') nowMs += segment.durationSec * 1000
        presentation.append(segment, nowMs)
      }
    }
    if (outputs.length > 0) for (const uri of uris) check(uri)
  }
  presentation.end()
  for (const uri of uris) check(uri)
  return versions
}

const FIXED_LINES = /^#EXT-X-(PART-INF|SERVER-CONTROL|TARGETDURATION):.*/gm

/** Transmuxes each INDEPENDENT part alone. @returns number of these parts */
function playIndependentParts(seed: number): number {
  const parts = [...pack(seed)].flat().flatMap((each) => (each.type === 'part' ? [each.part] : []))
  const independent = parts.filter((part) => part.independent)
  for (const { uri, chunks, durationSec } of independent) {
    const bytes = Buffer.concat(chunks)
    const { streams } = readPmt(readPackets(bytes)[1]!)
    const has = (track: typeof VIDEO) =>
      streams.some(({ streamType }) => streamType === track.streamType)
    const alone = transmux([{ bytes, durationSec, discontinuity: false }])
    const isPlayable =
      alone.independent === (has(VIDEO) ? true : undefined) &&
      alone.videoFrames > 0 === has(VIDEO) &&
      alone.audioFrames > 0 === has(AUDIO)
    if (!isPlayable) throw new Error(`${uri} alone: ${JSON.stringify({ ...alone, streams })}`)
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
    const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
    const checks = new PartChecks(() => 0.208)
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
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
  const outputs = [...packager.push(program(programOf(VIDEO)), 1e12)]
  for (let frame = 0; frame < 200; frame++) {
    // Below the limit of 10 s, but above the target of 2 s that the segment before the gap fixes.
    const ticks = 10 * SEC + frame * 3000 + (frame < 90 ? 0 : 9.5 * SEC)
    const key = frame % 60 === 0 || frame === 90
    outputs.push(...packager.push(unit(unitOf(VIDEO, ticks, { key })), 1e12))
  }
  const segments = outputs.flatMap((output) => (output.type === 'segment' ? [output.segment] : []))
  t.same(
    segments.map(({ discontinuity, endsTimeline }) => [discontinuity, endsTimeline]),
    [
      [false, false],
      [false, true],
      [true, false],
      [false, false],
    ],
  )
})

t.test('parts in which no frame begins have the audio of their time', async (t) => {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
  const parts: Part[] = []
  const push = (output: DemuxerOutput) => {
    for (const each of packager.push(output, 1e12)) if (each.type === 'part') parts.push(each.part)
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
  t.same(
    parts.filter(({ chunks }) => chunks.length === 0).map(({ uri }) => uri),
    [],
  )
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
  const options = { segmentSec: 10, maxSegmentSec: 10, partSec: 0.2 }
  const packager = new Packager({ ...options, epoch: 'e', tracks: 'all' })
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
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
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
  const segment = [...Array<string>(9).fill('header part'), 'unit part segment start']
  t.strictSame(calls, [...segment, ...segment, ...Array<string>(9).fill('header part')])
})

t.test('a part in which no audio PES packet begins is no gap', async (t) => {
  const packager = new Packager({ epoch: 'e', segmentSec: 1, maxSegmentSec: 10, partSec: 0.2 })
  const packets: number[] = []
  const push = (output: DemuxerOutput) => {
    for (const each of packager.push(output, 1e12)) {
      if (each.type !== 'part' || each.part.rendition !== 'audio-2') continue
      packets.push(readPackets(Buffer.concat(each.part.chunks)).length)
    }
  }
  const audios = [AUDIO, { ...AUDIO, pid: 261 }]
  push(program(programOf(VIDEO, ...audios)))
  let audioTicks = SEC
  for (let frame = 0; frame < 300; frame++) {
    push(unit(unitOf(VIDEO, SEC + frame * 3000, { key: frame % 30 === 0 })))
    // 16 frames per PES packet: 2.93 PES packets, and three parts, per segment.
    for (; audioTicks <= SEC + frame * 3000; audioTicks += 16 * 1920) {
      for (const track of audios) push(unit({ ...unitOf(AUDIO, audioTicks), track }))
    }
  }
  t.ok(packets.includes(2), 'PAT and PMT alone')
  t.equal(Math.min(...packets), 2, `${packets.length} parts`)
})
