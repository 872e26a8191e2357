import t from 'tap'
import { HotGop } from '../../src/stream/hot-gop.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import type { Track } from '../../src/mpegts/track.ts'
import { demux, readFixture, unitsOf } from '../mpegts/demux.ts'

const TRACK = { pid: 256, kind: 'video', codec: 'h264' } as Track
const PROGRAM = {
  ...{ type: 'program', layoutChanged: false },
  program: { tracks: [TRACK] },
} as unknown as DemuxerOutput

t.test('copies its packets, so that the rest of the received payloads is released', async (t) => {
  const gop = new HotGop()
  const payload = Buffer.alloc(64 * 1024, 7)
  const chunks = [payload.subarray(0, 188), payload.subarray(1316, 1504)]
  const unit = { track: TRACK, chunks, sizeBytes: 376, randomAccess: true } as unknown as PesUnit
  gop.push([PROGRAM, { type: 'unit', unit }], 0, false)
  gop.push([{ type: 'packets', pid: 256, chunks: [payload.subarray(0, 188)] }], 0, false)
  t.equal(gop.sizeBytes, 564)
  const kept = gop.take().flatMap(({ output }) => {
    if (output.type === 'unit') return output.unit.chunks
    return output.type === 'packets' ? output.chunks : []
  })
  t.ok(kept.every(({ buffer }) => buffer !== payload.buffer))
  t.ok(kept.every(({ buffer, length }) => buffer.byteLength === length))
  t.strictSame(Buffer.concat(kept), payload.subarray(0, 564))
})

t.test('keeps the packets alone, and reads the payloads from them again', async (t) => {
  const gop = new HotGop()
  const outputs = demux(readFixture('demo'))
  gop.push(outputs, 0, false)
  const sent = unitsOf(outputs)
  const kept = unitsOf(gop.take().map(({ output }) => output))
  t.ok(kept.length > 10)
  for (const unit of kept) {
    const { payload } = sent.find(
      ({ track, dtsTicks }) => track.pid === unit.track.pid && dtsTicks === unit.dtsTicks,
    )!
    if (unit.payload === payload || !unit.payload.equals(payload)) t.fail(`at ${unit.dtsTicks}`)
  }
})

t.test(
  'keeps the audio beside a key frame, which arrives before the key frame is complete',
  (t) => {
    const audio = { pid: 257, kind: 'audio', codec: 'aac' } as Track
    const program = { ...PROGRAM, program: { tracks: [TRACK, audio] } } as unknown as DemuxerOutput
    const unitOf = (track: Track, ptsTicks: number): DemuxerOutput => {
      const randomAccess = track.kind === 'audio' || ptsTicks % 90_000 === 0
      const unit = { track, ptsTicks, chunks: [Buffer.alloc(188)], sizeBytes: 188, randomAccess }
      return { type: 'unit', unit: unit as unknown as PesUnit }
    }
    const gop = new HotGop()
    const push = (...outputs: DemuxerOutput[]) => gop.push(outputs, 0, false)
    push(program, unitOf(TRACK, 0), unitOf(audio, 0), unitOf(TRACK, 86_400))
    push(unitOf(audio, 88_320), unitOf(audio, 90_240), unitOf(audio, 92_160), unitOf(TRACK, 90_000))
    t.equal(gop.sizeBytes, 3 * 188)
    const kept = gop.take().map(({ output }) => (output.type === 'unit' ? output.unit.ptsTicks : 0))
    t.strictSame(kept, [0, 90_240, 92_160, 90_000])
    t.end()
  },
)
