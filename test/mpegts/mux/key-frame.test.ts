import t from 'tap'
import { firstFrame } from '../../../src/mpegts/mux/key-frame.ts'
import { programsOf, unitsOf, demux } from '../demux.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'
import { AUDIO, VIDEO } from '../../hls/source.ts'

const STREAMS = [
  { pid: VIDEO.pid, streamType: VIDEO.streamType },
  { pid: AUDIO.pid, streamType: AUDIO.streamType },
]

const slices = (sizeBytes: number) => Buffer.alloc(sizeBytes, 7)
const frame = (ptsTicks: number, sizeBytes = 1000) =>
  pesPacket(slices(sizeBytes), { ptsTicks, length: 'none' })
const audio = (ptsTicks: number) => pesPacket(slices(300), { ptsTicks, streamId: 0xc0 })

/** Splits whole packets into chunks of so many packets. */
function chunksOf(bytes: Buffer, packets: number): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += packets * 188) {
    chunks.push(bytes.subarray(at, at + packets * 188))
  }
  return chunks
}

t.test(
  'the first frame of a segment is copied nowhere, and its tables list video alone',
  async (t) => {
    const builder = new TsBuilder().program(STREAMS)
    builder.unit(AUDIO.pid, audio(0)).unit(VIDEO.pid, frame(900))
    const end = builder.packets.length
    const { bytes } = builder
      .unit(AUDIO.pid, audio(1000))
      .unit(VIDEO.pid, frame(4500))
      .unit(VIDEO.pid, frame(8100))
    const expected = bytes.subarray(4 * 188, end * 188)
    for (const packets of [1, 2, 3, 5, 100]) {
      const [tables, ...views] = firstFrame(chunksOf(bytes, packets), VIDEO)!
      t.ok(Buffer.concat(views).equals(expected), `chunks of ${packets} packets`)
      t.ok(views.every(({ buffer }) => buffer === bytes.buffer))
      t.equal(tables!.length, 2 * 188)
    }
    const outputs = demux(Buffer.concat(firstFrame([bytes], VIDEO)!))
    t.match(programsOf(outputs).at(-1), { pcrPid: 0x1fff, tracks: [{ pid: VIDEO.pid }] })
    t.match(programsOf(outputs).at(-1)!.tracks, { length: 1 })
    t.match(unitsOf(outputs), { length: 1 })
  },
)

t.test('the tables name the video as the source of the PCR if the frame has one', async (t) => {
  const pcr = { adaptationFlags: 0x10, adaptation: Buffer.alloc(6) }
  const { bytes } = new TsBuilder().program(STREAMS).unit(VIDEO.pid, frame(900), pcr)
  const outputs = demux(Buffer.concat(firstFrame([bytes], VIDEO)!))
  t.equal(programsOf(outputs).at(-1)?.pcrPid, VIDEO.pid)
})

t.test('a PES packet without PTS continues the frame (ISO/IEC 13818-1 2.4.3.7)', async (t) => {
  const continued = pesPacket(slices(500), {})
  const { bytes, packets } = new TsBuilder()
    .program(STREAMS)
    .unit(VIDEO.pid, frame(900))
    .unit(AUDIO.pid, audio(0))
    .unit(VIDEO.pid, continued)
    .unit(VIDEO.pid, frame(4500))
  const isVideo = (packet: Buffer) => (packet.readUInt16BE(1) & 0x1fff) === VIDEO.pid
  const frameBytes = Buffer.concat(packets.filter(isVideo).slice(0, 6 + 3))
  const [, ...views] = firstFrame([bytes], VIDEO)!
  t.ok(Buffer.concat(views).equals(frameBytes))
})

t.test('a frame is refused beyond 4 MiB, or in more pieces than a reply may have', async (t) => {
  const big = (sizeBytes: number) =>
    new TsBuilder().program(STREAMS).unit(VIDEO.pid, frame(900, sizeBytes)).bytes
  t.ok(firstFrame([big(4_000_000)], VIDEO))
  t.equal(firstFrame([big(4_200_000)], VIDEO), undefined)

  const late = new TsBuilder().program(STREAMS).unit(AUDIO.pid, slices(4_200_000))
  t.equal(firstFrame([late.unit(VIDEO.pid, frame(900)).bytes], VIDEO), undefined, 'audio before it')

  const pieces = new TsBuilder().program(STREAMS).unit(VIDEO.pid, frame(900))
  for (let count = 0; count < 300; count++) {
    pieces.unit(AUDIO.pid, audio(0)).unit(VIDEO.pid, pesPacket(slices(100), {}))
  }
  t.equal(firstFrame([pieces.bytes], VIDEO), undefined)
})

t.test('a segment without video has no first frame', async (t) => {
  const { bytes } = new TsBuilder().program(STREAMS).unit(AUDIO.pid, audio(0))
  t.equal(firstFrame([bytes], VIDEO), undefined)
  t.equal(firstFrame([], VIDEO), undefined)
})
