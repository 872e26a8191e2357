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

const FRAME_TICKS = 1920

function create() {
  const stats = { triedHeaders: 0, addedPackets: 0, incompleteFrames: 0 }
  return { stats, alignment: new AdtsAlignment(stats) }
}

/** Payloads of what comes of PES packets, and their PTS. */
function align(pieces: readonly Buffer[], alignment = create().alignment) {
  const found = pieces.flatMap(
    (piece, index) => alignment.push(timed(piece, { ticks: index * 90_000 })) ?? [],
  )
  return found.map(({ pes, times }) => {
    const header = decodePesHeader(pesBytes(pes.chunks))!
    t.equal(header.ptsTicks, times.ptsTicks)
    t.ok(pesBytes(pes.chunks).subarray(pes.headerBytes).equals(pes.payload))
    return [pes.payload, times.ptsTicks] as const
  })
}

t.test('PES packets of whole frames stay as they are', async (t) => {
  const { alignment } = create()
  for (const count of [1, 3]) {
    const pes = timed(numbered(count))
    t.equal(alignment.push(pes), pes)
  }
})

t.test('a frame is in the PES packet in which it ends, at its time', async (t) => {
  const bytes = numbered(7)
  const [first, second, third] = [
    bytes.subarray(0, 150),
    bytes.subarray(150, 300),
    bytes.subarray(300),
  ]
  t.same(align([first, second, third]), [
    [bytes.subarray(0, 128), 0],
    [bytes.subarray(128, 256), 90_000 - FRAME_TICKS],
    [bytes.subarray(256), 180_000 - FRAME_TICKS],
  ])
})

t.test('a frame in many PES packets has the time of the next one, less its duration', async (t) => {
  const bytes = numbered(3)
  const pieces = [
    bytes.subarray(0, 66),
    bytes.subarray(66, 67),
    bytes.subarray(67, 128),
    bytes.subarray(128),
  ]
  t.same(align(pieces), [
    [bytes.subarray(0, 64), 0],
    [bytes.subarray(64), 270_000 - FRAME_TICKS],
  ])
})

t.test(
  'the rest of a frame that nobody has is dropped, however small the PES packets',
  async (t) => {
    const bytes = numbered(40)
    for (const size of [50, 100, 500]) {
      const pieces: Buffer[] = []
      for (let at = 30; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
      const found = align(pieces)
      const all = Buffer.concat(found.map(([payload]) => payload))
      // The last frame may wait for a PES packet with a time.
      t.ok(all.length >= 38 * FRAME_BYTES, `${size}`)
      t.ok(all.equals(bytes.subarray(64, 64 + all.length)))
      t.ok(found.every(([payload]) => payload.length % FRAME_BYTES === 0))
    }
  },
)

t.test('a frame without its rest is dropped and counted, and others are kept', async (t) => {
  const bytes = numbered(6)
  for (const after of [{ afterLoss: true }, { damaged: true }]) {
    const { alignment, stats } = create()
    alignment.push(timed(bytes.subarray(0, 100)))
    const next = timed(bytes.subarray(192), after)
    t.equal(alignment.push(next), next)
    t.equal(stats.incompleteFrames, 1)
  }
})

t.test('what is no frame passes', async (t) => {
  const { alignment } = create()
  const noise = timed(Buffer.alloc(5000, 0x55))
  t.equal(alignment.push(noise), noise)
  t.equal(alignment.push(noise), noise)
  const frames = timed(numbered(3))
  t.equal(alignment.push(frames), frames)
  const bytes = Buffer.concat([numbered(2), Buffer.alloc(20, 0x55), numbered(2)])
  t.same(align([bytes.subarray(0, 100), bytes.subarray(100)])[1]?.[0], bytes.subarray(64))
})

t.test('any cuts give the same frames at their times', async () => {
  const bytes = numbered(40)
  const property = fc.property(
    fc.array(fc.integer({ min: 10, max: 400 }), { minLength: 1, maxLength: 20 }),
    (sizes) => {
      const { alignment } = create()
      const found: TimedPes[] = []
      for (let [at, index] = [0, 0]; at < bytes.length; index++) {
        const end = at + sizes[index % sizes.length]!
        const begun = Math.ceil(at / FRAME_BYTES)
        const pes = alignment.push(timed(bytes.subarray(at, end), { ticks: begun * FRAME_TICKS }))
        if (pes !== undefined) found.push(pes)
        at = end
      }
      let frames = 0
      for (const { pes, times } of found) {
        if (times.ptsTicks !== frames * FRAME_TICKS || pes.payload.length % FRAME_BYTES !== 0)
          return false
        frames += pes.payload.length / FRAME_BYTES
      }
      const all = Buffer.concat(found.map(({ pes }) => pes.payload))
      // The last frame may wait for a PES packet with a time.
      return frames >= 39 && all.equals(bytes.subarray(0, all.length))
    },
  )
  fc.assert(property, { numRuns: 200 })
})

t.test('any bytes are read, and frames are found again', async () => {
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
      const { alignment } = create()
      let [pushedBytes, foundBytes] = [0, 0]
      for (const { from, size, noise, ...state } of all) {
        const payload = Buffer.concat([bytes.subarray(from, from + size), noise])
        pushedBytes += payload.length
        const found = alignment.push(timed(payload, state))
        if (found === undefined) continue
        foundBytes += found.pes.payload.length
        const { pes } = found
        if (!pesBytes(pes.chunks).subarray(pes.headerBytes).equals(pes.payload)) return false
      }
      const whole = timed(bytes, { afterLoss: true })
      return foundBytes <= pushedBytes && alignment.push(whole) === whole
    }),
    { numRuns: 200 },
  )
})
