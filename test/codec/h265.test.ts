import * as fc from 'fast-check'
import t from 'tap'
import { inspectH265AccessUnit } from '../../src/codec/h265.ts'
import {
  decodeH265Sequence,
  decodeH265Sps,
  decodeH265VpsFrameRate,
} from '../../src/codec/h265-parameter-sets.ts'
import { BitWriter, byteStream, nalUnit } from './nal-builder.ts'

// Encoder settings, the set it wrote, what ffprobe says of the stream; the codec strings as ISO/IEC 14496-15 E.3 has them.
// prettier-ignore
const ENCODED = [
  ['x265 1080p50 main', '42010101600000030090000003000003007ba003c0801107cb965654a4c2f0168080000003008000001904', 'hvc1.1.6.L123.90', 1920, 1080, 50],
  ['x265 10 bit 4:2:2, temporal layers, scaling lists, colours, cropped', '4201020408000003009d0800000300003c0000b00d880f9c93b659598acd249caf016a0202020800001f480003a98040', 'hvc1.4.10.L60.9D.8', 426, 242, 30_000 / 1001],
  ['x265 4K main 10, high tier, HRD', '420101222000000300900000030000030099a001e020021c4d965654a4c2f0168080000003008000001e304e4c3f00002faf0800017d7844', 'hvc1.2.4.H153.90', 3840, 2160, 60],
  ['x265 4:4:4, eight B-frames', '4201010408000003009e0800000300003c9003240f2cb3b1524995e02d010000030001000003001908', 'hvc1.4.10.L60.9E.8', 200, 120, 25],
  ['x265 interlaced', '42010101600000030040000003000003003ca0192079659d8a924caf016868000003000800000300c840', 'hvc1.1.6.L60.40', 200, 120, 25],
] as const

for (const [name, hex, codecString, width, height, frameRate] of ENCODED) {
  t.test(`sequence parameter set of ${name}`, async (t) => {
    const nal = Buffer.from(hex, 'hex')
    t.strictSame(decodeH265Sps(nal), { codecString, width, height, frameRate, videoRange: 'SDR' })
    const sized = { codecString, width, height }
    for (let length = 0; length < nal.length; length++) {
      const cut = decodeH265Sps(nal.subarray(0, length))
      if (cut !== undefined) t.match(cut, sized, `no wrong answer from ${length} bytes`)
    }
  })
}

// Transfer characteristics given to x265, the set it wrote.
// prettier-ignore
const RANGES = [
  ['smpte2084', '42010102200000030090000003000003003ca01a202072cad965654a4c2f016a12201208000003000800000300c840', 'PQ'],
  ['arib-std-b67', '42010102200000030090000003000003003ca01a202072cad965654a4c2f016a12241208000003000800000300c840', 'HLG'],
  ['bt2020-10', '42010102200000030090000003000003003ca01a202072cad965654a4c2f016a121c1208000003000800000300c840', 'SDR'],
  ['bt709', '42010101600000030090000003000003003ca01a202072cb965654a4c2f016a020202080000003008000000c84', 'SDR'],
] as const

t.test('dynamic range follows transfer_characteristics (RFC 8216bis 4.4.6.2)', async (t) => {
  for (const [transfer, hex, videoRange] of RANGES) {
    const nal = Buffer.from(hex, 'hex')
    t.match(decodeH265Sps(nal), { width: 200, height: 120, frameRate: 25, videoRange }, transfer)
    for (let length = 0; length < nal.length; length++) {
      const cut = decodeH265Sps(nal.subarray(0, length))?.videoRange
      t.ok(cut === undefined || cut === 'SDR' || cut === videoRange, `of ${length} bytes`)
    }
  }
})

t.test('the format of samples and the start of the VUI are in the set (Annex E)', async (t) => {
  const sequence = (name: string) => {
    const [, hex] = ENCODED.find(([each]) => each.includes(name))!
    return decodeH265Sequence(Buffer.from(hex, 'hex'))
  }
  t.match(sequence('1080p50 main'), { chromaFormat: 1, lumaBitDepth: 8, chromaBitDepth: 8 })
  t.match(sequence('10 bit 4:2:2'), { chromaFormat: 2, lumaBitDepth: 10, chromaBitDepth: 10 })
  t.match(sequence('4K main 10'), { chromaFormat: 1, lumaBitDepth: 10, chromaBitDepth: 10 })
  t.match(sequence('4:4:4'), { chromaFormat: 3, lumaBitDepth: 8 })
  t.strictSame(decodeH265Sequence(Buffer.from(RANGES[0][1], 'hex'))?.signal.color, {
    primaries: 9,
    transfer: 16,
    matrix: 9,
    fullRange: false,
  })
})

t.test('preferred transfer characteristics come from an SEI message (Annex D)', async (t) => {
  const preferredTransfer = (...nals: Buffer[]) =>
    inspectH265AccessUnit(byteStream(...nals, nal(19, first))).preferredTransfer
  // As x265 writes it with atc-sei=18.
  t.equal(preferredTransfer(sps, Buffer.from('4e0193011280', 'hex')), 18)
  t.equal(preferredTransfer(sps, nal(39, 5, 1, 0, 0x80)), undefined)
  t.equal(preferredTransfer(sps, nal(39, 147, 0, 0x80)), undefined, 'an empty one')
})

t.test(
  'reference picture sets coded as differences from the previous set are skipped (7.3.7)',
  async (t) => {
    const bits = new BitWriter().u(4, 0).u(3, 0).u(1, 1)
    bits.u(8, 1).u(32, 0x60000000).u(24, 0x900000).u(24, 0).u(8, 93) // profile, tier, level
    bits.ue(0).ue(1).ue(640).ue(480).u(1, 0) // ids, 4:2:0, size, no cropping
    bits.ue(0).ue(0).ue(4).u(1, 1).ue(4).ue(2).ue(0) // bit depths, order count, sub-layer ordering
    for (const size of [0, 3, 0, 3, 0, 0]) bits.ue(size)
    bits.u(1, 0).u(2, 0).u(1, 0) // no scaling lists, AMP, SAO, PCM
    bits.ue(3)
    bits.ue(2).ue(1).ue(0).u(1, 1).ue(0).u(1, 1).ue(0).u(1, 1) // three pictures
    bits.u(1, 1).u(1, 0).ue(0).u(1, 1).u(2, 0b01).u(2, 0b00).u(1, 1) // used, kept for later, dropped, used
    bits.u(1, 1).u(1, 0).ue(0).u(4, 0b1111) // so three again, and the current one
    bits
      .u(1, 1)
      .ue(2)
      .u(8 * 2, 0)
      .u(2, 0) // long-term pictures
    bits.u(2, 0).u(1, 1).u(4, 0).u(3, 0).u(1, 0).u(1, 1).u(32, 1).u(32, 30).u(8, 0xff) // VUI
    t.equal(decodeH265Sps(nalUnit([66, 1], bits))?.frameRate, 30)
  },
)

t.test(
  'decodeH265VpsFrameRate reads the frame rate of a video parameter set (7.3.2.1)',
  async (t) => {
    const vps = '40010c01ffff01600000030090000003000003003c95940c000003000400000300cba0'
    t.equal(decodeH265VpsFrameRate(Buffer.from(vps, 'hex')), 50)
    const silent = '40010c02ffff0408000003009d0800000300003c00009598acc048'
    t.equal(decodeH265VpsFrameRate(Buffer.from(silent, 'hex')), undefined)
  },
)

t.test('parameter set decoders accept any bytes without throwing', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(60), (bytes, keep) => {
      const start = Buffer.from(ENCODED[1][1], 'hex').subarray(0, keep)
      decodeH265Sps(Buffer.concat([start, bytes]))
      decodeH265VpsFrameRate(Buffer.concat([start, bytes]))
    }),
    { numRuns: 2000 },
  )
})

const nal = (type: number, ...payload: number[]): Buffer => Buffer.from([type << 1, 1, ...payload])
const vps = Buffer.from('40010c01ffff', 'hex')
const sps = Buffer.from(ENCODED[0][1], 'hex')
const first = 0x80

t.test('random access points are IRAP pictures: IDR, CRA, BLA (7.4.2.2)', async (t) => {
  for (let type = 0; type < 32; type++) {
    const bytes = byteStream(nal(35, 0x50), vps, sps, nal(type, first, 1, 2, 3))
    const expected = type >= 16 && type <= 21
    const { randomAccess } = inspectH265AccessUnit(bytes)
    if (randomAccess !== expected) t.fail(`NAL type ${type}`)
  }
  t.test(
    'a later slice of an IRAP picture, and an IRAP picture after another picture, are no random access points',
    async (t) => {
      t.notOk(inspectH265AccessUnit(byteStream(nal(19, 0x40))).randomAccess)
      t.notOk(inspectH265AccessUnit(byteStream(nal(1, first), nal(19, first))).randomAccess)
    },
  )
  t.test('an IRAP picture of another layer is no random access point', async (t) => {
    const otherLayer = Buffer.from([19 << 1, (1 << 3) | 1, first])
    t.notOk(inspectH265AccessUnit(byteStream(otherLayer)).randomAccess)
    t.ok(inspectH265AccessUnit(byteStream(otherLayer, nal(19, first))).randomAccess)
  })
})

t.test(
  'parameter sets of an access unit are listed with their ids (7.3.2.1 to 7.3.2.3)',
  async (t) => {
    const pps = nalUnit([68, 1], new BitWriter().ue(5).ue(0).u(8, 0))
    const { parameterSets, randomAccess } = inspectH265AccessUnit(
      byteStream(vps, sps, pps, nal(19, first)),
    )
    t.ok(randomAccess)
    t.strictSame(parameterSets, [
      { kind: 'vps', id: 0, nal: vps },
      { kind: 'sps', id: 0, nal: sps },
      { kind: 'pps', id: 5, nal: pps },
    ])
  },
)

t.test('the inspection accepts any NAL units without throwing', async () => {
  const nal = fc
    .tuple(fc.constantFrom(...[32, 33, 34, 39, 6, 19, 21, 1]), fc.uint8Array({ maxLength: 40 }))
    .map(([type, body]) => Buffer.from([type << 1, 1, ...body]))
  fc.assert(
    fc.property(fc.array(nal, { maxLength: 6 }), (nals) => {
      const { parameterSets } = inspectH265AccessUnit(byteStream(...nals))
      return parameterSets.every(({ id }) => Number.isSafeInteger(id))
    }),
    { numRuns: 2000 },
  )
})
