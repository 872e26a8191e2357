import t from 'tap'
import { Packager, type PackagerOptions, type PackagerOutput } from '../../src/hls/packager.ts'
import type { RenditionName } from '../../src/hls/file-names.ts'
import type { Part } from '../../src/hls/store/segment.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { Track } from '../../src/mpegts/track.ts'
import { readSamples } from '../mp4/box-tree.ts'
import {
  AUDIO,
  AUDIO_UNIT_TICKS,
  VIDEO,
  audioUnit,
  moved,
  program,
  programOf,
  unit,
  videoUnit,
} from './source.ts'

const SEC = 90_000
const SMALL: Track = { ...VIDEO, pid: 260 }
const FRENCH: Track = { ...AUDIO, pid: 261, language: 'fra' }
const OPTIONS: PackagerOptions = {
  ...{ epoch: 'e', formats: ['cmaf'], segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 },
}

/** Outputs of each call for 12 s of media, in which French lags; `frames` has the newest frame of each call. */
function pack(
  lagSec: number,
  frames: number[] = [],
  options: Partial<PackagerOptions> = {},
): (readonly PackagerOutput[])[] {
  const packager = new Packager({ ...OPTIONS, ...options })
  const calls = [packager.push(program(programOf(VIDEO, AUDIO, SMALL, FRENCH)), 1e12)]
  const push = (value: Parameters<typeof unit>[0]) => calls.push(packager.push(unit(value), 1e12))
  let audioTicks = 0
  let lateTicks = 0
  for (let frame = 0; frame < 360; frame++) {
    const video = videoUnit(SEC + frame * 3000, { key: frame % 60 === 0 })
    const { ptsTicks, dtsTicks } = video
    const times = { ptsTicks, dtsTicks }
    calls.push(packager.push({ type: 'header', pid: VIDEO.pid, times }, 1e12))
    push(video)
    push(moved(video, SMALL))
    for (; audioTicks <= frame * 3000; audioTicks += AUDIO_UNIT_TICKS) {
      push(audioUnit(SEC + audioTicks))
    }
    for (; lateTicks + lagSec * SEC <= frame * 3000; lateTicks += AUDIO_UNIT_TICKS) {
      push(moved(audioUnit(SEC + lateTicks), FRENCH))
    }
    while (frames.length < calls.length) frames.push(frame)
  }
  calls.push(packager.end())
  return calls
}

for (const lagSec of [0, 0.7]) {
  t.test(`all renditions publish a part in one step when one lags by ${lagSec} s`, async (t) => {
    let rows = 0
    let gaps = 0
    const calls = pack(lagSec)
    for (const outputs of calls) {
      const parts = outputs.flatMap((output) => (output.type === 'part' ? [output.part] : []))
      for (const serial of new Set(parts.map((part) => part.serial))) {
        const row = parts.filter((part) => part.serial === serial)
        t.same(
          row.map(({ rendition }) => rendition),
          ['cmaf-video-1', 'cmaf-video-2', 'cmaf-audio-1', 'cmaf-audio-2'],
        )
        rows++
        // At its end, the stream does not wait for the rest of a rendition that lags.
        if (outputs !== calls.at(-1)) gaps += row.filter((part) => part.chunks.length === 0).length
      }
    }
    t.equal(rows, 50, '10 parts in each of 5 segments')
    t.equal(gaps, 0)
  })
}

t.test(
  'a segment of video appears with its last part, of audio with the part after it',
  async (t) => {
    // PES packets arrive at their end.
    const calls = pack(AUDIO_UNIT_TICKS / SEC, [], { formats: ['ts', 'cmaf'] })
    let segments = 0
    for (const outputs of calls) {
      const parts = outputs.flatMap((output) => (output.type === 'part' ? output.part : []))
      for (const output of outputs) {
        if (output.type !== 'segment' || output.segment.parts.length === 0) continue
        const { rendition, uri, nextDateTimeMs } = output.segment
        const last = output.segment.parts.at(-1)!
        const isLate = rendition.startsWith('cmaf-audio') && nextDateTimeMs !== undefined
        const { serial } = parts.find((part) => part.rendition === rendition)!
        segments++
        t.equal(serial, last.serial + (isLate ? 1 : 0), uri)
      }
    }
    t.equal(segments, 4 * 5, 'beside transport stream, whose segments wait longer')
  },
)

t.test(
  'a rendition that always lags by over 1 s has empty parts, and delays the first parts alone',
  async (t) => {
    const frames: number[] = []
    const calls = pack(3, frames)
    const parts = calls.flatMap((outputs) =>
      outputs.flatMap((output) => (output.type === 'part' ? [output.part] : [])),
    )
    const delays = rowsOf(calls, frames).map(({ frame, serial }) => frame - (66 + 6 * serial))
    t.ok(delays[0]! >= 24 && delays[0]! <= 36, `${delays[0]} frames`)
    t.same(new Set(delays.slice(8, -1)), new Set([0, 1]), delays.join())
    const french = parts.filter(({ rendition }) => rendition === 'cmaf-audio-2')
    t.equal(french.length, 50)
    const isEmpty = (part: Part) => readSamples(Buffer.concat(part.chunks)).length === 0
    t.ok(french.some(isEmpty))
    const others = parts.filter(({ rendition }) => rendition !== 'cmaf-audio-2')
    t.ok(others.every(({ chunks }) => chunks.length > 0))
  },
)

t.test('a part of video alone is complete at the header after it', async (t) => {
  const packager = new Packager(OPTIONS)
  packager.push(program(programOf(VIDEO)), 1e12)
  const parts: string[] = []
  for (let frame = 0; frame < 90; frame++) {
    const ticks = SEC + frame * 3000
    const times = { ptsTicks: ticks, dtsTicks: ticks }
    for (const output of packager.push({ type: 'header', pid: VIDEO.pid, times }, 1e12)) {
      if (output.type === 'part') parts.push(`${frame} ${output.part.independent}`)
    }
    for (const output of packager.push(unit(videoUnit(ticks, { key: frame % 60 === 0 })), 1e12)) {
      t.not(output.type, 'part')
    }
  }
  t.same(parts, ['66 true', '72 false', '78 false', '84 false'])
})

t.test('a row waits at most a frame for audio that arrives when it begins', async (t) => {
  const frames: number[] = []
  const rows = rowsOf(pack(0, frames), frames)
  t.equal(rows.length, 50)
  const delays = rows.slice(0, -1).map(({ frame, serial }) => frame - (66 + 6 * serial))
  t.same(new Set(delays), new Set([0, 1]))
})

t.test('a row waits for the PES packet with the audio after it', async (t) => {
  const frames: number[] = []
  // PES packets arrive at their end.
  const rows = rowsOf(pack(AUDIO_UNIT_TICKS / SEC, frames), frames)
  t.equal(rows.length, 50)
  for (const { frame, serial } of rows.slice(0, -1)) {
    const endTicks = (66 + 6 * serial) * 3000
    const packets = Math.ceil((endTicks + AUDIO_UNIT_TICKS / 8) / AUDIO_UNIT_TICKS)
    t.equal(frame, Math.ceil((packets * AUDIO_UNIT_TICKS) / 3000), `part ${serial}`)
  }
})

/** Newest frame at each row, by the serial of its parts. */
function rowsOf(calls: readonly (readonly PackagerOutput[])[], frames: readonly number[]) {
  return calls.flatMap((outputs, call) =>
    outputs.flatMap((output) =>
      output.type === 'part' && output.part.rendition === 'cmaf-video-1'
        ? [{ frame: frames[call]!, serial: output.part.serial }]
        : [],
    ),
  )
}

t.test('a rendition that appears in a segment has the audio of its first part', async (t) => {
  const packager = new Packager(OPTIONS)
  packager.push(program(programOf(VIDEO, AUDIO)), 1e12)
  const parts: Part[] = []
  const push = (output: DemuxerOutput) => {
    for (const each of packager.push(output, 1e12)) if (each.type === 'part') parts.push(each.part)
  }
  let audioTicks = SEC
  for (let frame = 0; frame < 360; frame++) {
    const ticks = SEC + frame * 3000
    if (frame === 190) push(program(programOf(VIDEO, AUDIO, FRENCH)))
    push(unit(videoUnit(ticks, { key: frame % 60 === 0 })))
    for (; audioTicks <= ticks; audioTicks += AUDIO_UNIT_TICKS) {
      push(unit(audioUnit(audioTicks)))
      push(unit(moved(audioUnit(audioTicks), FRENCH)))
    }
  }
  const first = parts.find(({ rendition }) => rendition === 'cmaf-audio-2')!
  const startOf = (name: RenditionName) => {
    const part = parts.find((it) => it.rendition === name && it.serial === first.serial)!
    return readSamples(Buffer.concat(part.chunks))[0]!.decodeTicks
  }
  // Times of the first second are lifted by nine.
  const startSec = 9 + 1 + 240 / 30
  t.equal(startOf('cmaf-video-1'), startSec * SEC)
  const audioSec = startOf('cmaf-audio-2') / 48_000
  t.ok(audioSec <= startSec && audioSec > startSec - 1024 / 48_000, `${audioSec} s`)
  t.equal(startOf('cmaf-audio-1'), startOf('cmaf-audio-2'))
})

/** Packager with a row that waits for French, which sends nothing; its video is at `ticks`. */
function packWaiting(maxSegmentBytes: number): { packager: Packager; ticks: number } {
  const packager = new Packager({ ...OPTIONS, maxSegmentBytes })
  packager.push(program(programOf(VIDEO, AUDIO, FRENCH)), 1e12)
  let ticks = SEC
  for (let frame = 0; frame < 90; frame++) {
    packager.push(unit(videoUnit(ticks, { key: frame % 60 === 0 })), 1e12)
    ticks += 3000
  }
  return { packager, ticks }
}

/** Packager with an open segment of CMAF, whose encoder has been replaced; and a key frame, a second later. */
function packReplaced(options: Partial<PackagerOptions> = {}) {
  const packager = new Packager({ ...OPTIONS, ...options })
  const push = (frame: number, wallMs: number) =>
    packager.push(unit(videoUnit(SEC + frame * 3000, { key: frame % 60 === 0 })), wallMs)
  packager.push(program(programOf(VIDEO)), 1e12)
  for (let frame = 0; frame < 150; frame++) push(frame, 1e12)
  const outputs = packager.discontinuity(1e12)
  packager.push(program(programOf(VIDEO)), 1e12)
  return { packager, outputs, push: (frame: number, wallMs = 1e12) => push(300 + frame, wallMs) }
}

const typesOf = (outputs: readonly PackagerOutput[]) => outputs.map(({ type }) => type)

t.test('the end of a replaced encoder appears with the first two parts of the next', async (t) => {
  const { packager, outputs, push } = packReplaced()
  t.same(outputs, [])
  t.ok(packager.queuedBytes > 10_000, 'what is held counts')
  // 13 frames: the third part has begun.
  for (let frame = 0; frame < 12; frame++) t.same(push(frame), [], `frame ${frame}`)
  const released = push(12)
  t.same(typesOf(released), ['part', 'start', 'segment', 'part', 'part'])
  const [last, , segment, first] = released
  if (last?.type !== 'part' || segment?.type !== 'segment' || first?.type !== 'part') return
  t.equal(segment.segment.mediaSequence, last.part.mediaSequence)
  t.equal(first.part.discontinuity, true)
  t.ok(push(18).length > 0, 'nothing is held any more')
})

t.test('the end of a replaced encoder waits 3 s for the next at most', async (t) => {
  const { packager, push } = packReplaced()
  t.same(push(0, 1e12 + 2999), [])
  t.same(typesOf(push(1, 1e12 + 3000)), ['part', 'start', 'segment'])
  const paused = packReplaced()
  t.same(typesOf(paused.packager.settle()), ['part', 'segment'], 'nor while media pauses')
  t.same(typesOf(packReplaced().packager.end()), ['part', 'segment'])
  t.ok(packReplaced({ partSec: undefined }).outputs.length > 0, 'without parts')
  t.ok(packager.queuedBytes < 10_000, `${packager.queuedBytes} bytes`)
})

t.test('the end of a timeline waits 3 s for the next part at most', async (t) => {
  const packager = new Packager(OPTIONS)
  const push = (frame: number, wallMs: number) => {
    const jumpTicks = frame < 150 ? 0 : 100 * SEC
    const video = videoUnit(SEC + jumpTicks + frame * 3000, { key: frame % 60 === 0 })
    return typesOf(packager.push(unit(video), wallMs))
  }
  packager.push(program(programOf(VIDEO)), 1e12)
  for (let frame = 0; frame < 150; frame++) push(frame, 1e12)
  t.same(push(150, 1e12), ['fact', 'part'], 'the last part')
  t.same(push(151, 1e12 + 2999), [])
  t.same(push(152, 1e12 + 3000), ['segment'], 'though no key frame has come')
})

t.test('encoders that replace each other do not make the wait longer', async (t) => {
  const { packager, push } = packReplaced()
  t.same(push(0, 1e12 + 1000), [])
  t.same(packager.discontinuity(1e12 + 2000), [])
  t.same(typesOf(push(0, 1e12 + 3000)).slice(0, 2), ['part', 'start'])
})

t.test('facts do not wait for a rendition that lags', async (t) => {
  const { packager } = packWaiting(1e6)
  const { parameters: _, ...unread } = AUDIO
  const unsupported: Track = { ...unread, pid: 300, codec: 'opus', streamType: 6 }
  const value = programOf(VIDEO, AUDIO, FRENCH, unsupported)
  const outputs = packager.push(program(value), 1e12)
  t.same(
    outputs.map((output) => output.type === 'fact' && output.fact.code),
    ['TRACKS_LEFT_OUT'],
  )
})

t.test('segments that wait for a rendition count as queued, and are bounded', async (t) => {
  const { packager, ticks } = packWaiting(100_000)
  let mainBytes = 0
  let maxQueuedBytes = 0
  for (let frame = 0; frame < 400; frame++) {
    const video = videoUnit(ticks + frame, { sizeBytes: 10_000 })
    for (const output of packager.push(unit(video), 1e12)) {
      if (output.type === 'segment') mainBytes += output.segment.sizeBytes
    }
    maxQueuedBytes = Math.max(maxQueuedBytes, packager.queuedBytes)
  }
  t.ok(mainBytes > 3_500_000, `${mainBytes} bytes of 4 MB are published`)
  t.ok(maxQueuedBytes > 200_000, `${maxQueuedBytes} bytes are queued, though one segment is open`)
  t.ok(maxQueuedBytes < 450_000)
})
