import * as fc from 'fast-check'
import t from 'tap'
import { createDemuxerStats } from '../../../src/mpegts/demux/demuxer-stats.ts'
import { PacketSync } from '../../../src/mpegts/demux/packet-sync.ts'
import { cut } from '../demux.ts'
import { tsPacket } from '../ts-builder.ts'

/** Packets with different payloads, which contain no sync byte. */
const packets = (count: number): Buffer[] =>
  Array.from({ length: count }, (_, i) =>
    tsPacket({ pid: 0x100, counter: i, payload: Buffer.alloc(184, i % 64) }),
  )

const run = (bytes: Buffer, sizes: readonly number[]) => {
  const stats = createDemuxerStats()
  const sync = new PacketSync(stats)
  const found: Buffer[] = []
  const runs = [...cut(bytes, sizes)].flatMap((piece) => sync.push(piece)).concat(sync.end())
  for (const { bytes: buffer, start, end, stride } of runs) {
    for (let at = start; at < end; at += stride) found.push(buffer.subarray(at, at + 188))
  }
  return { found, stats }
}

t.test('aligned packets are found in one run per push', async (t) => {
  const bytes = Buffer.concat(packets(21))
  const sync = new PacketSync(createDemuxerStats())
  const runs = [...cut(bytes, [1316])].map((piece) => sync.push(piece))
  t.strictSame(
    runs.map((it) => it.map(({ start, end, stride }) => [start, end, stride])),
    [[[0, 1316, 188]], [[0, 1316, 188]], [[0, 1316, 188]]],
  )
  t.ok(runs[0]?.[0]?.bytes.buffer === bytes.buffer, 'as views')
})

t.test('packets are the same for any pieces of the input', async () => {
  const sent = packets(30)
  const strides = fc.constantFrom(188, 192, 204)
  const sizes = fc.array(fc.integer({ min: 1, max: 1500 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(strides, sizes, fc.nat(187), (stride, sizes, offset) => {
      const gap = Buffer.alloc(stride - 188, 1)
      const bytes = Buffer.concat(sent.flatMap((packet) => [packet, gap])).subarray(offset)
      const { found, stats } = run(bytes, sizes)
      const expected = offset === 0 ? sent : sent.slice(1)
      const skipped = offset === 0 ? 0 : stride - offset
      return stats.lostSyncs === 0 && stats.skippedBytes === skipped && sameBytes(found, expected)
    }),
  )
})

t.test('junk between packets loses no packet', async () => {
  const sent = packets(30)
  // A lock takes five packets in a row, so junk comes no closer together than that.
  const place = fc.oneof(fc.constant(0), fc.integer({ min: 5, max: 30 }))
  const junk = fc.array(fc.tuple(place, fc.uint8Array({ minLength: 1, maxLength: 700 })), {
    minLength: 1,
    maxLength: 3,
  })
  fc.assert(
    fc.property(junk, fc.integer({ min: 1, max: 1500 }), (junk, size) => {
      const pieces: Uint8Array[] = [...sent]
      const places = junk.map(([place]) => place).toSorted((a, b) => b - a)
      fc.pre(places.every((place, i) => i === 0 || places[i - 1]! - place >= 5))
      for (const [i, place] of places.entries()) {
        const bytes = junk[i]![1].map((byte) => (byte === 0x47 ? 0x46 : byte))
        pieces.splice(place, 0, bytes)
      }
      return sameBytes(run(Buffer.concat(pieces), [size]).found, sent)
    }),
  )
})

t.test('junk within a packet loses only that packet', async (t) => {
  const sent = packets(20)
  const bytes = Buffer.concat(sent)
  const at = 7 * 188 + 100
  const { found, stats } = run(
    Buffer.concat([bytes.subarray(0, at), Buffer.from('xyz'), bytes.subarray(at)]),
    [1316],
  )
  // The packet is there, but 188 bytes of it are not its own.
  t.ok(sameBytes(found.toSpliced(7, 1), sent.toSpliced(7, 1)))
  t.match(stats, { lostSyncs: 1, skippedBytes: 3 })
})

t.test('a damaged sync byte loses only its packet', async (t) => {
  const sent = packets(20)
  const bytes = Buffer.concat(sent)
  bytes[7 * 188] = 0
  const { found, stats } = run(bytes, [1316])
  t.ok(sameBytes(found, sent.toSpliced(7, 1)))
  t.match(stats, { lostSyncs: 1, skippedBytes: 188 })
})

t.test('sync bytes in payload give no lock', async (t) => {
  const sent = packets(20).map((packet) => {
    packet[20] = 0x47
    return packet
  })
  // Four of them stand 188 bytes apart before the fifth place, where the stream changes.
  for (const packet of sent.slice(4)) packet[20] = 0
  const bytes = Buffer.concat(sent).subarray(10)
  const { found } = run(bytes, [1316])
  t.ok(sameBytes(found, sent.slice(1)))
})

t.test('after a reset, the next push may start at any byte', async (t) => {
  const sent = packets(20)
  const bytes = Buffer.concat(sent)
  const stats = createDemuxerStats()
  const sync = new PacketSync(stats)
  t.equal(count(sync.push(bytes.subarray(0, 1000))), 5)
  sync.reset()
  t.equal(count(sync.push(bytes.subarray(2000))), 9)
  t.match(stats, { skippedBytes: 1000 - 5 * 188 + 11 * 188 - 2000, lostSyncs: 0 })
})

t.test('packets too few for a lock are found at the end', async (t) => {
  const sent = packets(3)
  t.ok(sameBytes(run(Buffer.concat(sent), [100]).found, sent))
})

t.test('bytes held between pushes are limited for any input', async () => {
  const adversary = fc.array(fc.constantFrom(0x47, 0), { minLength: 1, maxLength: 3000 })
  fc.assert(
    fc.property(adversary, fc.integer({ min: 1, max: 400 }), (bytes, size) => {
      const stats = createDemuxerStats()
      const sync = new PacketSync(stats)
      let pushed = 0
      for (const piece of cut(Buffer.from(bytes), [size])) {
        pushed += piece.length
        const done = count(sync.push(piece)) * 188 + stats.skippedBytes
        stats.packets += done - stats.skippedBytes
        // Between packets of 204 bytes 16 are skipped without being counted.
        if (pushed - stats.packets * (204 / 188) - stats.skippedBytes > 5 * 204) return false
      }
      return true
    }),
  )
})

function count(runs: ReturnType<PacketSync['push']>): number {
  return runs.reduce((sum, { start, end, stride }) => sum + Math.ceil((end - start) / stride), 0)
}

function sameBytes(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((bytes, i) => Buffer.from(bytes).equals(b[i]!))
}
