import * as fc from 'fast-check'
import t from 'tap'
import { BitReader } from '../../src/binary/bit-reader.ts'
import { crc32Mpeg2 } from '../../src/binary/crc32.ts'
import { unwrapTimestamp } from '../../src/mpegts/timestamps.ts'
import { BitWriter } from '../codec/nal-builder.ts'

t.test('reads bit fields of any width and position', async () => {
  const field = fc.oneof(
    fc
      .integer({ min: 1, max: 32 })
      .chain((count) => fc.tuple(fc.constant(count), fc.nat(2 ** count - 1)))
      .map(([count, value]) => ({ kind: 'u', count, value })),
    fc.nat(2 ** 32 - 2).map((value) => ({ kind: 'ue', count: 0, value })),
    fc
      .integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 })
      .map((value) => ({ kind: 'se', count: 0, value })),
  )
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      const writer = new BitWriter()
      for (const { kind, count, value } of fields) {
        if (kind === 'u') writer.u(count, value)
        else if (kind === 'ue') writer.ue(value)
        else writer.se(value)
      }
      const reader = new BitReader(writer.bytes)
      const same = fields.every(({ kind, count, value }) => {
        if (kind === 'u') return reader.readBits(count) === value
        return Object.is(kind === 'ue' ? reader.readUe() : reader.readSe(), value)
      })
      return same && !reader.overrun
    }),
  )
})

t.test('reads 0 past the end and reports `overrun`', async (t) => {
  const reader = new BitReader(Buffer.from([0xff]))
  reader.skipBits(4)
  t.equal(reader.readBits(4), 0x0f)
  t.notOk(reader.overrun)
  t.equal(reader.readFlag(), false)
  t.ok(reader.overrun)
  t.strictSame([reader.readBits(32), reader.readUe(), reader.readSe()], [0, 0, 0])
  t.ok(reader.overrun)
})

t.test('an Exp-Golomb code of more than 32 leading zeros sets `overrun`', async (t) => {
  const reader = new BitReader(Buffer.alloc(100))
  t.equal(reader.readUe(), 0)
  t.ok(reader.overrun)
})

t.test('computes CRC-32/MPEG-2 (13818-1 Annex A)', async (t) => {
  // The check value of the catalogue of parametrised CRC algorithms.
  t.equal(crc32Mpeg2(Buffer.from('123456789')), 0x0376e6e7)
  // A PAT of ffmpeg, checksum included.
  t.equal(crc32Mpeg2(Buffer.from('0000b00d0001c100000001f0002ab104b2', 'hex').subarray(1)), 0)
})

t.test('unwraps timestamps beyond 33 bits (13818-1 2.4.3.7)', async (t) => {
  const wrap = 2 ** 33
  t.equal(unwrapTimestamp(10, wrap - 10), wrap + 10)
  t.equal(unwrapTimestamp(wrap - 10, 10), -10)
  t.equal(unwrapTimestamp(wrap - 10, wrap + 10), wrap - 10)
  fc.assert(
    fc.property(
      fc.integer({ min: -(2 ** 45), max: 2 ** 45 }),
      fc.integer({ min: -(2 ** 32), max: 2 ** 32 - 1 }),
      (reference, distance) => {
        const time = reference + distance
        return unwrapTimestamp(((time % wrap) + wrap) % wrap, reference) === time
      },
    ),
  )
})
