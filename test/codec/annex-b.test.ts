import * as fc from 'fast-check'
import t from 'tap'
import { nalHeads, nalUnits, unescapeNal } from '../../src/codec/annex-b.ts'
import { readNalUnits } from '../support/annex-b.ts'
import { BitWriter, byteStream, nalUnit, pieces } from './nal-builder.ts'

const all = () => 100

t.test('nalHeads splits NAL units at start codes of three or four bytes (H.264 B.1)', async (t) => {
  const nals = [Buffer.from([0x67, 1, 2]), Buffer.from([0x68, 3]), Buffer.from([0x65, 0, 0, 3, 1])]
  t.strictSame([...nalHeads(byteStream(...nals), all)], nals)
  t.strictSame([...nalHeads(Buffer.from([1, 2, 3, 0, 0]), all)], [])
})

t.test('nalHeads yields the wanted number of bytes for each NAL header', async (t) => {
  const stream = byteStream(Buffer.from([7, 1, 2, 3]), Buffer.from([8, 1]), Buffer.from([5, 9, 9]))
  const wanted = (header: number) => (header === 7 ? 2 : header === 5 ? 3 : 0)
  t.strictSame([...nalHeads(stream, wanted)], [Buffer.from([7, 1]), Buffer.from([5, 9, 9])])
})

t.test('nalHeads yields the heads of any byte stream', async () => {
  const byte = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(0, 1, 3) }, fc.nat(255))
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 200 }), fc.integer({ min: 1, max: 9 }), (raw, size) => {
      const bytes = Buffer.from(raw)
      const found = [...nalHeads(bytes, () => size)].map((nal) => nal.toString('hex'))
      return JSON.stringify(found) === JSON.stringify(splitWhole(bytes, size))
    }),
    { numRuns: 1000, examples: [[[0, 0, 1, 0, 0, 1], 1]] },
  )
})

t.test('nalUnits yields the NAL units of an access unit in any pieces', async () => {
  const byte = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(0, 1, 3) }, fc.nat(255))
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 200 }), fc.integer({ min: 1, max: 9 }), (raw, size) => {
      const bytes = Buffer.from(raw)
      const found = [...nalUnits(pieces(bytes, size))].map((nal) => Buffer.concat(nal))
      const expected = readNalUnits(bytes).filter(({ length }) => length > 0)
      return JSON.stringify(found) === JSON.stringify(expected)
    }),
    {
      numRuns: 1000,
      examples: [
        [[0, 0, 1, 0, 0, 1], 1],
        [[0, 0, 1, 5, 0, 0, 0, 1, 6], 2],
      ],
    },
  )
})

t.test('nalUnits yields views, each with at least one byte', async (t) => {
  const chunks = [
    Buffer.from([9, 0, 0]),
    Buffer.from([1, 0x65]),
    Buffer.alloc(0),
    Buffer.from([7, 0]),
  ]
  const [nal, ...others] = [...nalUnits(chunks)]
  t.strictSame(nal, [Buffer.from([0x65]), Buffer.from([7])])
  t.equal(nal![0]!.buffer, chunks[1]!.buffer)
  t.strictSame(others, [])
})

t.test('unescapeNal removes emulation prevention bytes and no others (H.264 7.4.1)', async (t) => {
  t.strictSame(
    unescapeNal(Buffer.from([0x67, 0, 0, 3, 0, 0, 3, 1, 3, 0, 3])),
    Buffer.from([0x67, 0, 0, 0, 0, 1, 3, 0, 3]),
  )
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 1, 2, 3, 4)), (raw) => {
      const writer = new BitWriter()
      for (const byte of raw) writer.u(8, byte)
      const stop = 0x80
      return unescapeNal(nalUnit([], writer)).equals(Buffer.from([...raw, stop]))
    }),
  )
})

/** Reference implementation after the text of the standard: the first `size` bytes of each NAL unit. */
function splitWhole(bytes: Buffer, size: number): string[] {
  const parts: string[] = []
  const startCode = Buffer.from([0, 0, 1])
  for (let at = bytes.indexOf(startCode); at !== -1;) {
    const next = bytes.indexOf(startCode, at + 3)
    const nal = bytes.subarray(at + 3, next === -1 ? undefined : next)
    const gathered = nal.subarray(0, size)
    const trimmed = nal.length >= size ? gathered : withoutTrailingZeros(gathered)
    if (trimmed.length > 0) parts.push(trimmed.toString('hex'))
    at = next
  }
  return parts
}

function withoutTrailingZeros(bytes: Buffer): Buffer {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return bytes.subarray(0, end)
}
