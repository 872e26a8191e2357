import t from 'tap'
import { Packager, type PackagerOutput } from '../../src/hls/packager.ts'
import type { Part } from '../../src/hls/store/part.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer-output.ts'
import type { Track } from '../../src/mpegts/track.ts'
import { readPackets, readPtsTicks } from '../support/ts-reader.ts'
import { AUDIO, VIDEO, audioUnit, moved, program, programOf, unit, videoUnit } from './source.ts'

const SEC = 90_000
const SMALL: Track = { ...VIDEO, pid: 260 }
const FRENCH: Track = { ...AUDIO, pid: 261, language: 'fra' }

/** Outputs of each call for 12 s of media, in which French lags; `frames` has the newest frame of each call. */
function pack(
  lagSec: number,
  frames: number[] = [],
  tracks: readonly Track[] = [VIDEO, AUDIO, SMALL, FRENCH],
): (readonly PackagerOutput[])[] {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
  const calls = [packager.push(program(programOf(...tracks)), 1e12)]
  const push = (value: Parameters<typeof unit>[0]) => calls.push(packager.push(unit(value), 1e12))
  for (let frame = 0; frame < 360; frame++) {
    const video = videoUnit(SEC + frame * 3000, { key: frame % 60 === 0 })
    const { ptsTicks, dtsTicks } = video
    const times = { ptsTicks, dtsTicks }
    calls.push(packager.push({ type: 'header', pid: VIDEO.pid, times }, 1e12))
    push(video)
    push(moved(video, SMALL))
    if (frame % 5 === 0) {
      push(audioUnit(SEC + frame * 3000))
      const lateFrame = frame - lagSec * 30
      if (lateFrame >= 0) push(moved(audioUnit(SEC + lateFrame * 3000), FRENCH))
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
          ['main', 'video-2', 'audio-2'],
        )
        rows++
        // At its end, the stream does not wait for the rest of a rendition that lags.
        if (outputs !== calls.at(-1)) gaps += row.filter((part) => part.chunks.length === 0).length
      }
    }
    t.equal(rows, 40, '10 parts in each of 4 segments')
    t.equal(gaps, 0)
  })
}

t.test(
  'a rendition that always lags by over 1 s has gaps, and delays the first parts alone',
  async (t) => {
    const frames: number[] = []
    const calls = pack(3, frames)
    const parts = calls.flatMap((outputs) =>
      outputs.flatMap((output) => (output.type === 'part' ? [output.part] : [])),
    )
    const delays = calls.flatMap((outputs, call) =>
      outputs.flatMap((output) =>
        output.type === 'part' && output.part.rendition === 'main'
          ? [frames[call]! - (126 + 6 * output.part.serial)]
          : [],
      ),
    )
    t.ok(delays[0]! >= 24 && delays[0]! <= 36, `${delays[0]} frames`)
    t.same(new Set(delays.slice(8, -1)), new Set([0]), delays.join())
    const french = parts.filter(({ rendition }) => rendition === 'audio-2')
    t.equal(french.length, 40)
    t.ok(french.some(({ chunks }) => chunks.length === 0))
    t.ok(parts.filter(({ rendition }) => rendition === 'main').every(({ chunks }) => chunks.length))
  },
)

for (const tracks of [[VIDEO], [VIDEO, AUDIO]]) {
  t.test(`a part of ${tracks.length} tracks is complete at the header after it`, async (t) => {
    const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
    packager.push(program(programOf(...tracks)), 1e12)
    const parts: string[] = []
    for (let frame = 0; frame < 150; frame++) {
      const ticks = SEC + frame * 3000
      const times = { ptsTicks: ticks, dtsTicks: ticks }
      for (const output of packager.push({ type: 'header', pid: VIDEO.pid, times }, 1e12)) {
        if (output.type === 'part') parts.push(`${frame} ${output.part.independent}`)
      }
      const units = [videoUnit(ticks, { key: frame % 60 === 0 })]
      if (tracks.includes(AUDIO) && frame % 5 === 0) units.push(audioUnit(ticks))
      for (const each of units) {
        for (const output of packager.push(unit(each), 1e12)) t.not(output.type, 'part')
      }
    }
    t.same(parts, ['126 true', '132 false', '138 false', '144 false'])
  })
}

for (const { tracks, framesToWaitFor } of [
  { tracks: [VIDEO, AUDIO, SMALL], framesToWaitFor: 1 },
  // Audio PES packets have 5 frames.
  { tracks: [VIDEO, AUDIO, SMALL, FRENCH], framesToWaitFor: 5 },
]) {
  const waits = framesToWaitFor === 1 ? 'no audio' : 'the PES packet after it of other audio'
  t.test(`a row of ${tracks.length} tracks waits for ${waits}`, async (t) => {
    const frames: number[] = []
    const calls = pack(0, frames, tracks)
    const rows = calls.flatMap((outputs, call) =>
      outputs.flatMap((output) =>
        output.type === 'part' && output.part.rendition === 'main'
          ? [{ frame: frames[call], serial: output.part.serial }]
          : [],
      ),
    )
    t.equal(rows.length, 40)
    for (const { frame, serial } of rows.slice(0, -1)) {
      const nextFrame = 126 + 6 * serial
      t.equal(frame, framesToWaitFor * Math.ceil(nextFrame / framesToWaitFor), `part ${serial}`)
    }
  })
}

t.test('a rendition that appears in a segment has the audio of its first part', async (t) => {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 })
  packager.push(program(programOf(VIDEO, AUDIO)), 1e12)
  const parts: Part[] = []
  const push = (output: DemuxerOutput) => {
    for (const each of packager.push(output, 1e12)) if (each.type === 'part') parts.push(each.part)
  }
  for (let frame = 0; frame < 360; frame++) {
    const ticks = SEC + frame * 3000
    if (frame === 190) push(program(programOf(VIDEO, AUDIO, FRENCH)))
    push(unit(videoUnit(ticks, { key: frame % 60 === 0 })))
    if (frame % 5 > 0) continue
    push(unit(audioUnit(ticks)))
    push(unit(moved(audioUnit(ticks), FRENCH)))
  }
  const first = parts.find(({ rendition }) => rendition === 'audio-2')!
  const timesOf = (part: Part, { pid }: Track) =>
    readPtsTicks(readPackets(Buffer.concat(part.chunks)), pid)
  const main = parts.find(
    ({ rendition, serial }) => rendition === 'main' && serial === first.serial,
  )!
  const startTicks = SEC + 240 * 3000
  t.equal(timesOf(main, VIDEO)[0], startTicks)
  // Audio PES packets that begin at most 250 ms before the segment.
  t.same(
    timesOf(first, FRENCH).map((ticks) => (ticks - startTicks) / 3000),
    [-5, 0, 5],
  )
})

/** Packager with a row that waits for French, which sends nothing; its video is at `ticks`. */
function packWaiting(maxSegmentBytes: number): { packager: Packager; ticks: number } {
  const options = { epoch: 'e', segmentSec: 2, maxSegmentSec: 10, partSec: 0.2 }
  const packager = new Packager({ ...options, maxSegmentBytes })
  packager.push(program(programOf(VIDEO, AUDIO, FRENCH)), 1e12)
  let ticks = SEC
  for (let frame = 0; frame < 150; frame++) {
    packager.push(unit(videoUnit(ticks, { key: frame % 60 === 0 })), 1e12)
    ticks += 3000
  }
  return { packager, ticks }
}

t.test('facts do not wait for a rendition that lags', async (t) => {
  const { packager } = packWaiting(1e6)
  const unsupported: Track = { ...AUDIO, pid: 300, codec: 'opus', streamType: 6 }
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
