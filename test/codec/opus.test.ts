import * as fc from 'fast-check'
import t from 'tap'
import { decodeOpusAccessUnit, opusChannels } from '../../src/codec/opus.ts'

const packet = (...bytes: number[]) =>
  decodeOpusAccessUnit(Buffer.from([0x7f, 0xe0, bytes.length, ...bytes]), 0)

t.test('the duration of an Opus packet follows from its first bytes (RFC 6716 3.1)', async (t) => {
  const durations = [
    [[0x00], 480],
    [[0x18], 2880],
    [[0x60], 480],
    [[0x68], 960],
    [[0x80], 120],
    [[0xf8], 960],
    [[0xf9], 1920],
    [[0xfa], 1920],
    [[0xfb, 3], 2880],
    [[0xfb, 6], 5760],
  ] as const
  for (const [bytes, samples] of durations) {
    t.equal(packet(...bytes)?.samples, samples, Buffer.from(bytes).toString('hex'))
  }
})

t.test('packets that last 0 or more than 120 ms are rejected (RFC 6716 3.2.5)', async (t) => {
  t.equal(packet(0xfb, 0), undefined)
  t.equal(packet(0xfb, 7), undefined)
  t.equal(packet(0xfb), undefined, 'without its number of frames')
})

t.test('the control header has trims and extensions of its own length', async (t) => {
  const bytes = Buffer.from([9, 0x7f, 0xfc, 1, 1, 56, 0, 10, 2, 7, 7, 0xf8, 9])
  t.strictSame(decodeOpusAccessUnit(bytes, 1), { start: 11, end: 12, samples: 960 })
})

t.test('decodeOpusAccessUnit accepts any bytes without throwing', async () => {
  const tail = fc.uint8Array({ maxLength: 20 })
  fc.assert(
    fc.property(tail, (raw) => {
      const bytes = Buffer.from([0x7f, 0xe0 | (raw[0] ?? 0), ...raw])
      const found = decodeOpusAccessUnit(bytes, 0)
      return found === undefined || (found.start < found.end && found.end <= bytes.length)
    }),
  )
})

t.test('channels in the order of Vorbis (RFC 7845 5.1.1.2)', async (t) => {
  for (let count = 1; count <= 8; count++) {
    const { streams, coupledStreams, channels } = opusChannels(count)!
    t.equal(streams + coupledStreams, count)
    t.strictSame(
      channels.toSorted((a, b) => a - b),
      Array.from({ length: count }, (_, index) => index),
    )
  }
  t.strictSame(opusChannels(6), { streams: 4, coupledStreams: 2, channels: [0, 4, 1, 2, 3, 5] })
  for (const code of [0, 9, 0x81, 0xff]) t.equal(opusChannels(code), undefined)
})
