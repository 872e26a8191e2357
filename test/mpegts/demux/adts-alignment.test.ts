/** AAC in PES packets that are cut anywhere: a model of whole frames. */
import * as fc from 'fast-check'
import t from 'tap'
import { AdtsAlignment, type TimedPes } from '../../../src/mpegts/demux/adts-alignment.ts'
import { decodePesHeader, pesBytes } from '../../../src/mpegts/pes.ts'
import { adtsFrames } from '../../support/access-units.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const FRAME_BYTES = 64

function timed(payload: Buffer, { damaged = false, afterLoss = false, ticks = 0 } = {}): TimedPes {
  const ts = new TsBuilder()
  ts.unit(0x101, pesPacket(payload, { ptsTicks: ticks, streamId: 0xc0 }))
  const chunks = [Buffer.concat(ts.packets)]
  const { sizeBytes: headerBytes } = decodePesHeader(pesBytes(chunks))!
  const sizeBytes = chunks[0]!.length
  const pes = { chunks, sizeBytes, damaged, afterLoss, packetNumber: 0, headerBytes, payload }
  return { pes, times: { ptsTicks: ticks, dtsTicks: ticks }, isStamped: true }
}

/** Frames of which each has a number in its payload. */
function numbered(count: number): Buffer {
  const bytes = adtsFrames(count, FRAME_BYTES)
  for (let frame = 0; frame < count; frame++) bytes[frame * FRAME_BYTES + 20] = frame
  return bytes
}

const create = () => new AdtsAlignment({ triedHeaders: 0 })
const payloads = (all: readonly TimedPes[]) => all.map(({ pes }) => pes.payload)

t.test('PES packets of whole frames stay as they are', async (t) => {
  const alignment = create()
  for (const count of [1, 3]) {
    const pes = timed(numbered(count))
    t.strictSame(alignment.push(pes), [pes])
    t.equal(alignment.push(pes)[0], pes)
  }
})

t.test('a frame is in the PES packet in which it begins', async (t) => {
  const alignment = create()
  const bytes = numbered(5)
  const [first, second] = [bytes.subarray(0, 150), bytes.subarray(150)]
  t.same(alignment.push(timed(first, { ticks: 10 })), [])
  const found = alignment.push(timed(second, { ticks: 20 }))
  t.same(payloads(found), [bytes.subarray(0, 192), bytes.subarray(192)])
  t.same(
    found.map(({ times }) => times.ptsTicks),
    [10, 20],
  )
  for (const { pes } of found)
    t.ok(pesBytes(pes.chunks).subarray(pes.headerBytes).equals(pes.payload))
})

t.test('the rest of a frame that nobody has is dropped', async (t) => {
  const bytes = numbered(4)
  t.same(payloads(create().push(timed(bytes.subarray(100)))), [bytes.subarray(128)])
})

t.test('a frame without its rest is dropped, and others are kept', async (t) => {
  const bytes = numbered(6)
  for (const after of [{ afterLoss: true }, {}]) {
    const alignment = create()
    t.same(alignment.push(timed(bytes.subarray(0, 100))), [])
    t.same(payloads(alignment.push(timed(bytes.subarray(192), after))), [
      bytes.subarray(0, 64),
      bytes.subarray(192),
    ])
  }
  const alignment = create()
  alignment.push(timed(bytes.subarray(0, 100)))
  const damaged = timed(bytes.subarray(100, 200), { damaged: true })
  t.strictSame(alignment.push(damaged).at(-1), damaged)
  t.same(alignment.flush(), [])
})

t.test('the end of the stream drops a frame that is not complete', async (t) => {
  const alignment = create()
  const bytes = numbered(3)
  alignment.push(timed(bytes.subarray(0, 150)))
  t.same(payloads(alignment.flush()), [bytes.subarray(0, 128)])
  alignment.push(timed(bytes.subarray(0, 40)))
  t.same(alignment.flush(), [])
})

t.test('what has no frames passes', async (t) => {
  const noise = timed(Buffer.alloc(1000, 0x55))
  t.strictSame(create().push(noise), [noise])
})

t.test('any cuts give the same frames', async () => {
  const bytes = numbered(40)
  const property = fc.property(
    fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 }),
    (sizes) => {
      const alignment = create()
      const found: TimedPes[] = []
      for (let [at, index] = [0, 0]; at < bytes.length; index++) {
        const end = at + sizes[index % sizes.length]!
        found.push(...alignment.push(timed(bytes.subarray(at, end))))
        at = end
      }
      found.push(...alignment.flush())
      return (
        Buffer.concat(payloads(found)).equals(bytes) &&
        found.every(({ pes }) => pes.payload.length % FRAME_BYTES === 0)
      )
    },
  )
  fc.assert(property, { numRuns: 200 })
})

t.test('any bytes are read to the end', async () => {
  const bytes = numbered(20)
  const pieces = fc.array(
    fc.record({
      from: fc.nat(bytes.length - 1),
      size: fc.nat(500),
      damaged: fc.boolean(),
      afterLoss: fc.boolean(),
      noise: fc.uint8Array({ maxLength: 30 }),
    }),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(pieces, (all) => {
      const alignment = create()
      let [pushedBytes, foundBytes] = [0, 0]
      for (const { from, size, noise, ...state } of all) {
        const payload = Buffer.concat([bytes.subarray(from, from + size), noise])
        pushedBytes += payload.length
        for (const { pes } of alignment.push(timed(payload, state))) {
          foundBytes += pes.payload.length
          if (!pesBytes(pes.chunks).subarray(pes.headerBytes).equals(pes.payload)) return false
        }
      }
      return foundBytes <= pushedBytes
    }),
    { numRuns: 200 },
  )
})
