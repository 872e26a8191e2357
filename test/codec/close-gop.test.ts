/** Key frames that begin a GOP of their own. */
import t from 'tap'
import { closeGop } from '../../src/codec/close-gop.ts'

const nals = (...headers: readonly number[]) =>
  Buffer.concat(headers.map((header) => Buffer.from([0, 0, 0, 1, header, 1, 0xaa, 0xaa])))

t.test('an IDR picture of H.264 begins a GOP, another I picture does not', async (t) => {
  for (const [slice, isClosed] of [
    [0x65, true],
    [0x61, false],
  ] as const) {
    const payload = nals(0x09, 0x67, 0x68, 0x06, slice, slice)
    const before = Buffer.from(payload)
    t.equal(closeGop('h264', payload), isClosed)
    t.ok(payload.equals(before))
  }
})

t.test('a CRA picture of H.265 becomes a BLA picture without leading pictures', async (t) => {
  const header = (type: number) => type << 1
  for (const [type, after] of [
    [16, 16],
    [18, 18],
    [19, 19],
    [20, 20],
    [21, 18],
  ] as const) {
    const payload = nals(...[35, 32, 33, 34, type, type].map(header))
    t.ok(closeGop('h265', payload))
    t.ok(payload.equals(nals(...[35, 32, 33, 34, after, after].map(header))), `type ${type}`)
  }
  t.notOk(closeGop('h265', nals(header(35), header(1))))
})
