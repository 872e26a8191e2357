import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import t from 'tap'
import { timescaleOf } from '../../src/mp4/init-segment.ts'
import { AudioSamples, type AudioSource } from '../../src/mp4/audio-samples.ts'
import { LatmReader } from '../../src/codec/latm.ts'
import { loas } from '../codec/latm-builder.ts'
import { BitWriter } from '../codec/nal-builder.ts'
import { payloadOf, readFixture } from '../mpegts/demux.ts'
import { adtsFrames } from '../support/access-units.ts'
import { readAudio, unitsOfKind, type Samples } from './fragmented-track.ts'

const push = (samples: AudioSamples, bytes: Buffer, ptsTicks = 0, damaged = false) =>
  samples.push({ bytes, ptsTicks, damaged })

t.test('each ADTS frame of a PES packet is a sample without its header', async (t) => {
  const found = push(new AudioSamples({ codec: 'aac' }), adtsFrames(15, 64), 90_000)
  t.equal(found.length, 15)
  t.strictSame(
    found.map(({ sizeBytes }) => sizeBytes),
    Array.from({ length: 15 }, () => 57),
  )
  t.strictSame(
    found.map(({ decodeTicks }) => decodeTicks),
    Array.from({ length: 15 }, (_, index) => 48_000 + index * 1024),
  )
  t.match(found[0]!.format, { timescale: 48_000, parameters: { codecString: 'mp4a.40.2' } })
  t.ok(found.every(({ format }) => format === found[0]!.format))
})

t.test('a CRC behind the ADTS header leaves the sample, too', async (t) => {
  const bytes = adtsFrames(2, 64)
  for (const at of [0, 64]) bytes[at + 1] = 0xf0
  t.equal(push(new AudioSamples({ codec: 'aac' }), bytes)[0]!.sizeBytes, 55)
})

/** Frames of 64 bytes whose channels are not in the header. */
function withoutChannels(count: number): Buffer {
  const bytes = adtsFrames(count, 64)
  for (let at = 0; at < bytes.length; at += 64) {
    bytes[at + 2]! &= 0xfe
    bytes[at + 3]! &= 0x3f
  }
  return bytes
}

t.test('AAC whose headers do not tell the channels is dropped', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  t.strictSame(push(samples, withoutChannels(3)), [])
  t.equal(samples.stats.dropped, 3)
})

t.test('a few frames among those of several raw data blocks are dropped, too', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const bytes = adtsFrames(10, 64)
  // All but the last of each five have two blocks.
  for (let frame = 0; frame < 10; frame++) if (frame % 5 !== 4) bytes[frame * 64 + 6]! |= 1
  t.strictSame(push(samples, bytes), [])
  t.match(samples, { inexpressible: 8, stats: { dropped: 10 } })
  t.equal(push(samples, adtsFrames(20, 64), 90_000).length, 14, 'once most have one')
  const both = adtsFrames(1000, 64)
  for (let frame = 0; frame < 1000; frame++) both[frame * 64 + 6]! |= 1
  t.same(push(samples, both, 180_000), [])
  t.equal(push(samples, adtsFrames(100, 64), 360_000).length, 50, 'however long they had two')
})

t.test('the PTS belongs to the first frame that begins in the PES packet', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const bytes = adtsFrames(4, 64)
  t.equal(push(samples, bytes.subarray(0, 100)).length, 1)
  const rest = push(samples, bytes.subarray(100), 2 * 1920)
  t.strictSame(
    rest.map(({ decodeTicks }) => decodeTicks),
    [1024, 2048, 3072],
  )
  t.match(samples.stats, { dropped: 0, skippedBytes: 0, gaps: 0 })
})

t.test('a frame that ends in a later PES packet has the PTS of the one it begins in', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const bytes = adtsFrames(2, 64)
  t.strictSame(push(samples, bytes.subarray(0, 40), 90_000), [])
  t.equal(push(samples, bytes.subarray(40), 91_920)[0]!.decodeTicks, 48_000)
})

t.test('samples are the same for any division into PES packets', async () => {
  const cases: [string, AudioSource][] = [
    ['h264-aac', { codec: 'aac' }],
    ['mp3', { codec: 'mp3' }],
    ['ac3-dvb', { codec: 'ac3' }],
    ['eac3', { codec: 'eac3' }],
  ]
  const streams = cases.map(([name, source]) => {
    const units = unitsOfKind(readFixture(name), 'audio')
    const bytes = Buffer.concat(units.map(payloadOf))
    const expected = readAudio(units, source)
    const headerBytes = source.codec === 'aac' ? 7 : 0
    let end = 0
    const ends = expected.map(({ sizeBytes }) => (end += headerBytes + sizeBytes))
    const starts = [0, ...ends.slice(0, -1)]
    /** PTS of the first frame that begins at an offset or behind it. */
    const ptsAt = (at: number) => {
      const { decodeTicks, format } = expected.at(starts.findIndex((start) => start >= at))!
      return (decodeTicks * 90_000) / timescaleOf(format)
    }
    return { source, bytes, ptsAt, expected }
  })
  const written = (samples: Samples) =>
    samples.map(({ chunks, decodeTicks }) => [decodeTicks, Buffer.concat(chunks)])
  fc.assert(
    fc.property(
      fc.constantFrom(...streams),
      fc.array(fc.integer({ min: 200, max: 4000 }), { minLength: 1, maxLength: 8 }),
      ({ source, bytes, ptsAt, expected }, sizes) => {
        const samples = new AudioSamples(source)
        const found: ReturnType<AudioSamples['push']>[number][] = []
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const end = at + sizes[turn % sizes.length]!
          found.push(...push(samples, bytes.subarray(at, end), ptsAt(at)))
          at = end
        }
        return isDeepStrictEqual(written(found), written(expected))
      },
    ),
    { numRuns: 100 },
  )
})

t.test('bytes between frames are skipped and counted', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const bytes = Buffer.concat([
    Buffer.alloc(5, 0x55),
    adtsFrames(2),
    Buffer.alloc(3),
    adtsFrames(2),
  ])
  t.equal(push(samples, bytes).length, 4)
  t.equal(samples.stats.skippedBytes, 8)
})

t.test('a header that no frame confirms changes no format', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const [first] = push(samples, adtsFrames(2))
  const false441 = Buffer.from(adtsFrames(1, 20))
  false441[2] = 0x50
  const found = push(samples, Buffer.concat([false441, Buffer.alloc(9), adtsFrames(2)]), 2 * 1920)
  t.equal(found.length, 2)
  t.ok(found.every(({ format }) => format === first!.format))
})

t.test('a change of the sample rate is a change of format and timescale', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const slower = adtsFrames(3, 64)
  for (const at of [0, 64, 128]) slower[at + 2] = 0x50
  const [first] = push(samples, adtsFrames(3))
  const found = push(samples, slower, 90_000)
  t.equal(first!.format.timescale, 48_000)
  t.match(found[0], { decodeTicks: 44_100, format: { timescale: 44_100 } })
})

t.test('a format that returns is the same object', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const slower = adtsFrames(2)
  for (const at of [0, 64]) slower[at + 2] = 0x50
  const found = push(samples, Buffer.concat([adtsFrames(2), slower, adtsFrames(2)]))
  const formats = found.map(({ format }) => format)
  t.equal(new Set(formats).size, 2)
  t.equal(formats.at(-1), formats[0])
})

t.test('a damaged PES packet is dropped with what came before it', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const bytes = adtsFrames(4, 64)
  push(samples, bytes.subarray(0, 100))
  t.strictSame(push(samples, bytes.subarray(100, 150), 0, true), [])
  t.equal(push(samples, bytes.subarray(192), 3 * 1920)[0]!.decodeTicks, 3072)
  t.match(samples.stats, { dropped: 1, gaps: 1 })
})

t.test('ADTS frames that an AudioSpecificConfig cannot express are dropped', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const severalBlocks = adtsFrames(2)
  for (const at of [0, 64]) severalBlocks[at + 6] = 0xfd
  const channelsInside = adtsFrames(2)
  for (const at of [0, 64]) channelsInside[at + 3] = 0
  t.strictSame(push(samples, severalBlocks), [])
  t.strictSame(push(samples, channelsInside), [])
  t.equal(samples.stats.dropped, 4)
})

t.test('ADTS of LATM has SBR that was signaled explicitly', async (t) => {
  const audio = '0010101100010001100010000' // SBR, 24 kHz, stereo, 48 kHz, AAC-LC
  const frames = [Buffer.alloc(20, 1), Buffer.alloc(300, 2)]
  const reading = new LatmReader().push(loas({ audio, subFrames: 2 }, ...frames))
  if (reading.type !== 'adts') throw new Error('not converted')
  const samples = new AudioSamples({ codec: 'aac', signaled: reading.audio.parameters })
  const found = push(samples, reading.bytes, 90_000)
  t.strictSame(
    found.map(({ chunks }) => chunks[0]),
    frames,
  )
  t.match(found[1], {
    decodeTicks: 25_024,
    format: { timescale: 24_000, parameters: { codecString: 'mp4a.40.5', sampleRate: 48_000 } },
  })
})

/** E-AC-3 syncframe of 32 bytes at 48 kHz. */
function syncframe(type: number, substream: number, blocksCode: number, channelMap?: number) {
  const bits = new BitWriter().u(16, 0x0b77).u(2, type).u(3, substream).u(11, 15)
  bits.u(2, 0).u(2, blocksCode).u(3, 2).u(1, 0).u(5, 16).u(5, 31).u(1, 0)
  if (channelMap !== undefined) bits.u(1, 1).u(16, channelMap)
  return Buffer.concat([bits.bytes, Buffer.alloc(32 - bits.bytes.length)])
}

t.test('a sample of E-AC-3 has six blocks and all substreams (TS 102 366 F.3)', async (t) => {
  const samples = new AudioSamples({ codec: 'eac3' })
  const two = [syncframe(0, 0, 1), syncframe(1, 0, 1, 0x0200)]
  const bytes = Buffer.concat([...two, ...two, ...two])
  const found = push(samples, Buffer.concat([bytes, bytes, two[0]!]))
  t.strictSame(
    found.map(({ sizeBytes, decodeTicks }) => [sizeBytes, decodeTicks]),
    [
      [192, 0],
      [192, 1536],
    ],
  )
  t.match(found[0]!.format, { codec: 'eac3', substreams: [{ dependents: 1, channelMap: 0x0200 }] })
})

t.test('syncframes that come to no sample are read once, and skipped together', async (t) => {
  const samples = new AudioSamples({ codec: 'eac3' })
  const whole = syncframe(0, 0, 3)
  const independent = syncframe(0, 0, 0)
  const other = syncframe(0, 1, 0)
  const short = Buffer.concat([
    ...Array.from({ length: 5 }, () => independent),
    ...Array.from({ length: 42 }, () => other),
    Buffer.alloc(2),
  ])
  const rounds = 20
  const bytes = Buffer.concat([whole, whole, ...Array.from({ length: rounds }, () => short), whole])
  const found = push(samples, bytes)
  t.equal(found.length, 3)
  t.match(samples.stats, { dropped: rounds, skippedBytes: 2 * rounds })
  // Each is read to begin, and again as one of the syncframes; those behind the last of a sample end it.
  t.ok(samples.stats.frames <= 47 * rounds + 2 * (rounds + 4), `${samples.stats.frames} frames`)
})

t.test('syncframes before the first substream are skipped together', async (t) => {
  const samples = new AudioSamples({ codec: 'eac3' })
  const dependents = Array.from({ length: 7 }, (_, index) => syncframe(1, index, 3))
  const found = push(samples, Buffer.concat([...dependents, syncframe(0, 0, 3)]), 90_000)
  t.strictSame(
    found.map(({ decodeTicks }) => decodeTicks),
    [48_000],
  )
  t.match(samples.stats, { dropped: 1, skippedBytes: 0 })
})

t.test('a search goes on at the next sync byte', async (t) => {
  const samples = new AudioSamples({ codec: 'aac' })
  const noise = Buffer.alloc(10_000, 0x55)
  noise[5000] = 0xff
  t.equal(push(samples, Buffer.concat([noise, adtsFrames(3)])).length, 3)
  t.match(samples.stats, { skippedBytes: 10_000, candidates: 2 })
})

t.test(
  '1024 frames of a PES packet are read, and what is more than 16 KiB is skipped',
  async (t) => {
    const samples = new AudioSamples({ codec: 'aac' })
    t.equal(push(samples, adtsFrames(5000, 8)).length, 1024)
    t.equal(samples.stats.skippedBytes, (5000 - 1024) * 8)
    const ptsTicks = 90_000 * 60
    const found = push(samples, adtsFrames(1100, 8), ptsTicks)
    const rest = push(samples, adtsFrames(1, 8), ptsTicks + 1100 * 1920)
    t.strictSame([found.length, rest.length], [1024, 77])
    const last = found.at(-1)!
    t.equal(
      rest[0]!.decodeTicks,
      last.decodeTicks + 1024,
      'the rest goes on where the PES packet ended',
    )
  },
)

t.test('Opus packets lose their control headers; each lasts what it says', async (t) => {
  const parameters = { codecString: 'opus', sampleRate: 48_000, channels: 2 }
  const rates = { timescale: 48_000, inputSampleRate: 48_000 }
  const format = { codec: 'opus', parameters, preSkip: 312, ...rates } as const
  const samples = new AudioSamples({ codec: 'opus', format })
  const packet = Buffer.concat([Buffer.from([0xfc]), Buffer.alloc(299, 7)])
  const short = Buffer.from([0xe0, 1, 2])
  const bytes = Buffer.concat([
    ...[Buffer.from([0x7f, 0xf0, 255, 45, 1, 56]), packet],
    ...[Buffer.from([0x7f, 0xe0, 3]), short],
  ])
  const found = push(samples, bytes, 90_000)
  t.strictSame(
    found.map(({ chunks }) => chunks[0]),
    [packet, short],
  )
  t.strictSame(
    found.map(({ decodeTicks }) => decodeTicks),
    [48_000, 48_960],
  )
  t.equal(samples.nextTicks, 49_080)
})
