import * as fc from 'fast-check'
import t from 'tap'
import { FragmentWriter } from '../../src/mp4/fragment.ts'
import { VideoSamples } from '../../src/mp4/video-samples.ts'
import { decodeH264Sps } from '../../src/codec/h264-sps.ts'
import { pieces } from '../codec/nal-builder.ts'
import { readNalUnits } from './box-tree.ts'
import { ChunkMemory } from './chunk-memory.ts'

/** Parameter sets of x264, 320 x 180, and of 176 x 144. */
const SPS = Buffer.from('6742c00dda05067e7c0440000003004000000f03c50aa8', 'hex')
const OTHER_SPS = Buffer.from('6742c00ada0b13b0110000030001000003001e0f1226a0', 'hex')
const PPS = Buffer.from('68ce0fc8', 'hex')
const DELIMITER = Buffer.from('09f0', 'hex')
const SEI = Buffer.from('0605010280', 'hex')
const IDR = Buffer.from('65888400ab', 'hex')
const SLICE = Buffer.from('419a01cd', 'hex')

const START_CODE = Buffer.from([0, 0, 0, 1])

function stream(...nals: readonly Uint8Array[]): Buffer {
  return Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))
}

type AccessUnit = Parameters<VideoSamples['push']>[0]

function unit(bytes: Buffer, fields: Partial<AccessUnit> = {}): AccessUnit {
  return {
    chunks: [bytes],
    ptsTicks: 3000,
    dtsTicks: 0,
    startsFrame: true,
    damaged: false,
    ...fields,
  }
}

const keyFrame = (dtsTicks = 0, sps = SPS) =>
  unit(stream(DELIMITER, sps, PPS, SEI, IDR), { dtsTicks, ptsTicks: dtsTicks })
const frame = (dtsTicks: number, fields: Partial<AccessUnit> = {}) =>
  unit(stream(DELIMITER, SLICE), { dtsTicks, ptsTicks: dtsTicks, ...fields })

t.test('parameter sets and delimiters leave the sample, SEI stays (14496-15 5.4.1)', async (t) => {
  const sample = new VideoSamples('h264').push(keyFrame())!
  const bytes = Buffer.concat(sample.chunks)
  t.equal(bytes.length, sample.sizeBytes)
  t.strictSame(readNalUnits(bytes), [SEI, IDR])
  t.strictSame(
    sample.format.parameterSets.map(({ nal }) => nal),
    [SPS, PPS],
  )
  t.equal(sample.sync, true)
})

t.test('start codes of any form, stray zeros and empty NAL units leave no trace', async (t) => {
  const bytes = Buffer.concat([
    Buffer.from([0, 0, 0, 0, 1]),
    ...[SPS, Buffer.from([0, 0, 1]), PPS, Buffer.from([0, 0, 0, 0, 1]), IDR],
    Buffer.from([0, 0, 1, 0, 0, 1]),
    ...[SEI, Buffer.from([0, 0, 0, 0, 0])],
    Buffer.from([0, 0, 1]),
  ])
  for (let size = 1; size <= bytes.length; size++) {
    const sample = new VideoSamples('h264').push(unit(bytes, { chunks: pieces(bytes, size) }))!
    t.strictSame(readNalUnits(Buffer.concat(sample.chunks)), [IDR, SEI], `pieces of ${size}`)
  }
})

/** Payload bytes with emulation prevention, not ending in zero. */
const payload = fc
  .array(fc.oneof({ weight: 2, arbitrary: fc.constantFrom(0, 1, 2, 3) }, fc.nat(255)), {
    maxLength: 40,
  })
  .map((raw) => {
    const escaped: number[] = []
    for (const byte of raw) {
      const zeros = escaped.at(-1) === 0 && escaped.at(-2) === 0
      if (zeros && byte <= 3) escaped.push(3)
      escaped.push(byte)
    }
    return Buffer.from([...escaped, 0x80])
  })
/** Slices, SEI and filler; in H.264 the header is one byte. */
const nal = fc
  .tuple(fc.constantFrom(0x41, 0x01, 0x06, 0x0c), payload)
  .map(([header, rest]) => Buffer.from([header, ...rest]))
const accessUnit = fc.array(nal, { minLength: 1, maxLength: 6 })

t.test('NAL units come back byte for byte, whatever the access units', async () => {
  const startCode = fc.constantFrom(...['000001', '00000001', '0000000001'])
  const zeros = fc.constantFrom('', '00', '000000')
  const unitOf = fc.tuple(accessUnit, startCode, zeros, fc.integer({ min: 1, max: 300 }))
  fc.assert(
    fc.property(fc.array(unitOf, { minLength: 1, maxLength: 10 }), (units) => {
      const samples = new VideoSamples('h264')
      samples.push(keyFrame())
      return units.every(([nals, code, trailing, size], index) => {
        const bytes = Buffer.concat(
          nals.flatMap((each) => [Buffer.from(code, 'hex'), each, Buffer.from(trailing, 'hex')]),
        )
        const sample = samples.push(frame((index + 1) * 3000, { chunks: pieces(bytes, size) }))!
        const found = readNalUnits(Buffer.concat(sample.chunks))
        return found.length === nals.length && found.every((each, i) => each.equals(nals[i]!))
      })
    }),
    { numRuns: 300 },
  )
})

t.test(
  'NAL units come back byte for byte, wherever PES packets without PTS go on with them',
  async () => {
    const startCode = fc.constantFrom(...['000001', '00000001', '0000000001'])
    const cuts = fc.array(fc.nat(260), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(
        fc.array(accessUnit, { minLength: 2 }),
        startCode,
        cuts,
        fc.nat(20),
        (units, code, cuts, chunkBytes) => {
          const samples = new VideoSamples('h264')
          const memory = new ChunkMemory(() => Buffer.alloc(chunkBytes + 1))
          const writer = new FragmentWriter({ trackId: 1, memory })
          writer.push(samples.push(keyFrame())!)
          for (const [index, nals] of units.entries()) {
            const bytes = Buffer.concat(nals.flatMap((each) => [Buffer.from(code, 'hex'), each]))
            // The first packet has the header of a NAL unit, or there would be no sample to go on with.
            const begun = code.length / 2 + 1
            const places = cuts
              .map((cut) => begun + (cut % (bytes.length - begun)))
              .toSorted((a, b) => a - b)
            for (const [part, from] of [0, ...places].entries()) {
              const chunks = pieces(bytes.subarray(from, places[part]), 7)
              const sample = samples.push(frame(index + 1, { chunks, startsFrame: part === 0 }))
              if (sample !== undefined) writer.push(sample)
            }
          }
          const { mediaBytes } = writer
          const { chunks } = writer.end({ untilTicks: units.length + 1, startsSegment: false })!
          const found = readNalUnits(Buffer.concat(chunks).subarray(-mediaBytes)).slice(2)
          return (
            Buffer.concat(found).equals(Buffer.concat(units.flat())) &&
            found.length === units.flat().length
          )
        },
      ),
      { numRuns: 2000 },
    )
  },
)

t.test('a parameter set with the same content is no change of format', async (t) => {
  const samples = new VideoSamples('h264')
  const first = samples.push(keyFrame(0))!
  t.equal(samples.push(frame(3000))!.format, first.format)
  t.equal(samples.push(keyFrame(6000))!.format, first.format)
})

t.test('a change of parameter sets within a GOP is applied at the next sync sample', async (t) => {
  const samples = new VideoSamples('h264')
  const first = samples.push(keyFrame(0))!
  const change = samples.push(frame(3000, { chunks: [stream(OTHER_SPS, PPS, SLICE)] }))!
  t.equal(change.format, first.format)
  const next = samples.push(unit(stream(IDR), { dtsTicks: 6000, ptsTicks: 6000 }))!
  t.not(next.format, first.format)
  t.strictSame(next.format.sequence.video, decodeH264Sps(OTHER_SPS))
  t.equal(next.format.parameterSets.length, 2, 'the sets of the old sequence are forgotten')
})

t.test('access units are dropped until a sync sample has all parameter sets', async (t) => {
  const samples = new VideoSamples('h264')
  t.equal(samples.push(frame(0)), undefined)
  t.equal(samples.push(unit(stream(SPS, IDR))), undefined)
  t.equal(samples.push(unit(stream(Buffer.from('6742', 'hex'), PPS, IDR))), undefined)
  t.ok(samples.push(keyFrame(3000)))
  t.equal(samples.stats.dropped, 3)
})

t.test('a sync sample with a new SPS is dropped until its PPS has come', async (t) => {
  const samples = new VideoSamples('h264')
  samples.push(keyFrame(0))
  t.equal(samples.push(unit(stream(OTHER_SPS, IDR), { dtsTicks: 3000 })), undefined)
  t.equal(samples.push(frame(6000)), undefined)
  const next = samples.push(unit(stream(PPS, IDR), { dtsTicks: 9000 }))!
  t.strictSame(next.format.sequence.video, decodeH264Sps(OTHER_SPS))
  t.equal(samples.stats.dropped, 2)
})

t.test('an access unit of more than 4096 NAL units is dropped', async (t) => {
  const samples = new VideoSamples('h264')
  const slices = (count: number) => stream(...Array.from({ length: count }, () => SLICE))
  samples.push(keyFrame(0))
  t.ok(samples.push(unit(slices(4096), { dtsTicks: 3000 })))
  const before = samples.stats.nalUnits
  t.equal(samples.push(unit(slices(50_000), { dtsTicks: 6000 })), undefined)
  t.equal(samples.stats.nalUnits - before, 4097)
  t.equal(samples.push(frame(6000, { startsFrame: false })), undefined, 'what continues it')
  t.ok(samples.push(frame(9000)))
  t.equal(samples.stats.dropped, 2)
})

t.test('a damaged key frame changes no format and is no sync sample', async (t) => {
  const samples = new VideoSamples('h264')
  const first = samples.push(keyFrame(0))!
  const damaged = samples.push({ ...keyFrame(3000, OTHER_SPS), damaged: true })!
  t.match(damaged, { sync: false, format: first.format })
  t.equal(samples.push(unit(stream(IDR), { dtsTicks: 6000 }))!.format, first.format)
})

t.test('a second field belongs to the sample of the first', async (t) => {
  const samples = new VideoSamples('h264')
  t.equal(samples.push(frame(0, { startsFrame: false })), undefined, 'without a first field')
  samples.push(keyFrame(0))
  t.match(samples.push(frame(0, { startsFrame: false })), { continues: true, sync: false })
  t.equal(samples.push(frame(3000, { chunks: [stream(DELIMITER)] })), undefined, 'nothing is left')
  t.equal(samples.push(frame(3000, { startsFrame: false })), undefined, 'the first was dropped')
  t.equal(samples.stats.dropped, 3)
})

/** Parameter sets of x265, 320 x 180. */
const H265_VPS = Buffer.from('40010c01ffff016000000300900000030000030078959809', 'hex')
const H265_SPS = Buffer.from(
  '42010101600000030090000003000003007ba003c0801107cb965654a4c2f0168080000003008000001904',
  'hex',
)
const H265_PPS = Buffer.from('4401c172b46240', 'hex')
const H265_IDR = Buffer.from('260180af', 'hex')

t.test('a new SPS of H.265 keeps the VPS, which may come only once (7.4.2.4.2)', async (t) => {
  const samples = new VideoSamples('h265')
  samples.push(unit(stream(H265_VPS)))
  const first = samples.push(unit(stream(H265_SPS, H265_PPS, H265_IDR)))!
  const changed = Buffer.from(H265_SPS)
  changed[17] = 0x5d // level 3.1
  const bytes = stream(changed, H265_PPS, H265_IDR)
  const next = samples.push(unit(bytes, { dtsTicks: 3000 }))!
  t.strictSame(
    [first, next].map(({ format }) => format.parameterSets.map(({ nal }) => nal)),
    [
      [H265_VPS, H265_SPS, H265_PPS],
      [H265_VPS, changed, H265_PPS],
    ],
  )
})

t.test('IDR, CRA and BLA pictures of H.265 are sync samples (14496-15 8.4.3)', async (t) => {
  const slice = (type: number, layer = 0) => Buffer.from([type << 1, (layer << 3) | 1, 0x80, 0xaf])
  for (const type of [1, 9, 16, 19, 20, 21]) {
    const samples = new VideoSamples('h265')
    samples.push(unit(stream(H265_VPS, H265_SPS, H265_PPS, H265_IDR)))
    const bytes = stream(Buffer.from([0x46, 1, 0x50]), slice(type), slice(21, 1))
    const sample = samples.push(unit(bytes, { dtsTicks: 3000 }))!
    t.equal(sample.sync, type >= 16, `nal_unit_type ${type}`)
    t.strictSame(readNalUnits(Buffer.concat(sample.chunks)), [slice(type), slice(21, 1)])
  }
})

const OTHER_PPS = Buffer.from('68ce0f1320', 'hex')
const THIRD_PPS = Buffer.from('68ce0f3480', 'hex')
/** Of id 1. */
const SECOND_PPS = Buffer.from('685383f2', 'hex')

const nalsOf = (sample: { chunks: readonly Uint8Array[] } | undefined) =>
  sample && readNalUnits(Buffer.concat(sample.chunks))

t.test(
  'a PPS that the sample entry lacks is in its sample, up to the next sync sample',
  async (t) => {
    for (const pps of [OTHER_PPS, SECOND_PPS]) {
      const samples = new VideoSamples('h264')
      const first = samples.push(keyFrame(0))!
      const frames = [[pps, SEI, SLICE], [SLICE], [SPS, PPS, SLICE]]
      for (const [index, nals] of frames.entries()) {
        const bytes = stream(DELIMITER, ...nals)
        const sample = samples.push(frame(3000 * (index + 1), { chunks: [bytes] }))!
        t.same(nalsOf(sample), nals)
        t.equal(sample.sizeBytes, Buffer.concat(sample.chunks).length)
        t.equal(sample.format, first.format)
      }
      const next = samples.push(keyFrame(12_000))!
      t.same(nalsOf(next), [SEI, IDR])
      t.same(nalsOf(samples.push(frame(15_000, { chunks: [stream(SPS, PPS, SLICE)] }))), [SLICE])
      const hasBoth = pps === SECOND_PPS
      t.equal(next.format === first.format, !hasBoth)
      t.same(
        next.format.parameterSets.map(({ nal }) => nal),
        hasBoth ? [SPS, PPS, pps] : [SPS, PPS],
      )
    }
  },
)

t.test('with sets in band, sync samples begin with all, and a PPS is no change', async (t) => {
  const samples = new VideoSamples('h264')
  const inBandSets = true
  const first = samples.push({ ...keyFrame(0), inBandSets })!
  t.same(nalsOf(first), [SPS, PPS, SEI, IDR])
  t.equal(first.sizeBytes, Buffer.concat(first.chunks).length)
  const frames: [Buffer[], Buffer[]][] = [
    [[SLICE], [SLICE]],
    [
      [OTHER_PPS, SECOND_PPS, SLICE],
      [OTHER_PPS, SECOND_PPS, SLICE],
    ],
    [
      [SPS, THIRD_PPS, IDR],
      [SPS, THIRD_PPS, SECOND_PPS, IDR],
    ],
    [[IDR], [SPS, THIRD_PPS, SECOND_PPS, IDR]],
  ]
  for (const [index, [nals, expected]] of frames.entries()) {
    const chunks = [stream(DELIMITER, ...nals)]
    const sample = samples.push(frame(3000 * (index + 1), { chunks, inBandSets }))!
    t.same(nalsOf(sample), expected)
    t.equal(sample.format, first.format)
  }
  const other = samples.push({ ...keyFrame(30_000, OTHER_SPS), inBandSets })!
  t.same(nalsOf(other), [OTHER_SPS, PPS, SEI, IDR])
  t.not(other.format, first.format, 'another SPS')
})

t.test('no set of a damaged access unit is in band', async (t) => {
  const samples = new VideoSamples('h264')
  samples.push({ ...keyFrame(0), inBandSets: true })
  const chunks = [stream(OTHER_PPS, SLICE)]
  t.same(nalsOf(samples.push(frame(3000, { chunks, damaged: true }))), [SLICE])
  t.same(nalsOf(samples.push({ ...keyFrame(6000), inBandSets: true })), [SPS, PPS, SEI, IDR])
})

t.test('a PPS in band comes back byte for byte, wherever PES packets cut it', async (t) => {
  const bytes = stream(DELIMITER, SLICE, OTHER_PPS, SLICE)
  for (const pieceBytes of [1, 7]) {
    // Behind the first slice, which makes it a sample.
    for (let cut = 14; cut < bytes.length; cut++) {
      const samples = new VideoSamples('h264')
      const writer = new FragmentWriter({
        trackId: 1,
        memory: new ChunkMemory(() => Buffer.alloc(64)),
      })
      writer.push(samples.push({ ...keyFrame(0), inBandSets: true })!)
      for (const [from, to] of [
        [0, cut],
        [cut, undefined],
      ] as const) {
        const chunks = pieces(bytes.subarray(from, to), pieceBytes)
        const sample = samples.push(frame(3000, { chunks, startsFrame: from === 0 }))
        if (sample !== undefined) writer.push(sample)
      }
      const { mediaBytes } = writer
      const { chunks } = writer.end({ untilTicks: 6000, startsSegment: false })!
      const found = readNalUnits(Buffer.concat(chunks).subarray(-mediaBytes)).slice(4)
      t.same(found, [SLICE, OTHER_PPS, SLICE], `cut at ${cut}`)
    }
  }
})

t.test('parameter sets of the timeline before are known', async (t) => {
  const before = new VideoSamples('h264')
  before.push(keyFrame(0))
  before.push(frame(3000, { chunks: [stream(SECOND_PPS, SLICE)] }))
  const samples = new VideoSamples('h264', before.stats, before.parameterSets)
  t.equal(samples.push(frame(6000)), undefined, 'it begins with a sync sample')
  const { format } = samples.push(keyFrame(9000))!
  t.same(
    format.parameterSets.map(({ nal }) => nal),
    [SPS, PPS, SECOND_PPS],
  )
})
