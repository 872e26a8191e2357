import t from 'tap'
import { SegmentWriter } from '../../../src/mpegts/mux/segment-writer.ts'
import { MIN_SLAB_BYTES, slabBytesFor, SlabPool } from '../../../src/mpegts/mux/slab-pool.ts'
import { AUDIO, VIDEO } from '../../hls/source.ts'
import { continuityFaults, readPackets } from '../../support/ts-reader.ts'
import { tsPacket } from '../ts-builder.ts'

const MAX_SLAB_BYTES = slabBytesFor(Infinity)

const PROGRAM = { programNumber: 1, pcrPid: VIDEO.pid, tracks: [VIDEO, AUDIO] }

/** Numbered packets with arbitrary continuity counters. */
const packets = (count: number, from = 0, pid = VIDEO.pid) =>
  Array.from({ length: count }, (_, n) => {
    const payload = Buffer.alloc(184)
    payload.writeUInt32BE(from + n)
    return tsPacket({ pid, payload })
  })

const numbersIn = (chunks: readonly Buffer[]) =>
  readPackets(Buffer.concat(chunks))
    .slice(2)
    .map(({ payload }) => payload.readUInt32BE())

function writer(): SegmentWriter {
  const made = new SegmentWriter(new SlabPool())
  made.setProgram(PROGRAM)
  return made
}

t.test('a segment has PAT, PMT and the written packets, in chunks of at most a slab', async (t) => {
  const it = writer()
  const all: Buffer[] = []
  for (let segment = 0; segment < 3; segment++) {
    it.begin()
    for (let from = 0; from < 2000; from += 50) it.write([Buffer.concat(packets(50, from))])
    t.equal(it.sizeBytes, 2002 * 188)
    const chunks = it.finish()
    t.equal(it.sizeBytes, 0)
    if (segment > 0) t.ok(chunks.length <= 5, `${chunks.length} slabs of a quarter each`)
    t.ok(chunks.every(({ length }) => length % 188 === 0 && length <= MAX_SLAB_BYTES))
    t.same(
      numbersIn(chunks),
      Array.from({ length: 2000 }, (_, n) => n),
    )
    all.push(...chunks)
  }
  t.same(continuityFaults(readPackets(Buffer.concat(all))), [], 'counters run on')
})

t.test('later writes do not change a finished segment', async (t) => {
  const it = writer()
  it.begin()
  it.write(packets(5))
  const first = it.finish()
  const copy = Buffer.concat(first)
  it.begin()
  it.write(packets(5, 5))
  it.finish()
  t.ok(Buffer.concat(first).equals(copy))
})

t.test('slabs have a quarter of the segment size, from 32 to 256 KiB', async (t) => {
  for (const [segmentPackets, expected] of [
    [10, MIN_SLAB_BYTES],
    [20_000, MAX_SLAB_BYTES],
  ] as const) {
    const it = writer()
    const sizes = new Set<number>()
    const media = Buffer.concat(packets(segmentPackets))
    for (let segment = 0; segment < 40; segment++) {
      it.begin()
      it.write([media])
      const chunks = it.finish()
      if (segment >= 35) for (const { buffer } of chunks) sizes.add(buffer.byteLength)
    }
    t.same([...sizes], [expected])
  }
})
