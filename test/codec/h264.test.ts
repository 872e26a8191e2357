import * as fc from 'fast-check'
import t from 'tap'
import { inspectH264AccessUnit } from '../../src/codec/h264.ts'
import {
  decodeH264SliceSyntax,
  decodeH264Sequence,
  decodeH264Sps,
} from '../../src/codec/h264-sps.ts'
import { BitWriter, byteStream, nalUnit } from './nal-builder.ts'

// Encoder settings, the set it wrote, what ffprobe says of the stream.
// prettier-ignore
const ENCODED = [
  ['x264 1080p60 baseline', '6742c02ada01e0089f97011000003e90001d4c00f1832a', 'avc1.42c02a', 1920, 1080, 60_000 / 1001],
  ['x264 1080i25 high', '67640028acd94078044fde0220000003002000000643e2c5b2c0', 'avc1.640028', 1920, 1080, 25],
  ['x264 10 bit 4:2:2, scaling matrices, aspect ratio 1:1', '677a0015b6cb40d8ff278088000003000800000301e078b175', 'avc1.7a0015', 426, 240, 30],
  ['x264 4:4:4, cropped both ways, all of the VUI', '67f4000b9196834fe79f01b501010140000003004000000c03c50aa8', 'avc1.f4000b', 202, 106, 24],
  ['x264 QCIF', '6742c00ada0b13b0110000030001000003001e0f1226a0', 'avc1.42c00a', 176, 144, 15],
] as const

for (const [name, hex, codecString, width, height, frameRate] of ENCODED) {
  t.test(`sequence parameter set of ${name}`, async (t) => {
    const nal = Buffer.from(hex, 'hex')
    t.strictSame(decodeH264Sps(nal), { codecString, width, height, frameRate, videoRange: 'SDR' })
    const sized = { codecString, width, height }
    for (let length = 0; length < nal.length; length++) {
      const cut = decodeH264Sps(nal.subarray(0, length))
      if (cut !== undefined) t.match(cut, sized, `no wrong answer from ${length} bytes`)
    }
  })
}

// Transfer characteristics given to x264, the set it wrote.
// prettier-ignore
const RANGES = [
  ['smpte2084', '676e000ba6cb41a23cb2e02d4244025000000300100000030320f142aa', 'PQ'],
  ['arib-std-b67', '676e000ba6cb41a23cb2e02d4244825000000300100000030320f142aa', 'HLG'],
  ['bt2020-10', '676e000ba6cb41a23cb2e02d4243825000000300100000030320f142aa', 'SDR'],
  ['bt709', '6742c00bda0d11e597016a020202800000030080000019078a1550', 'SDR'],
] as const

t.test('dynamic range follows transfer_characteristics (RFC 8216bis 4.4.6.2)', async (t) => {
  for (const [transfer, hex, videoRange] of RANGES) {
    const nal = Buffer.from(hex, 'hex')
    t.match(decodeH264Sps(nal), { width: 200, height: 120, frameRate: 25, videoRange }, transfer)
    for (let length = 0; length < nal.length; length++) {
      const cut = decodeH264Sps(nal.subarray(0, length))?.videoRange
      t.ok(cut === undefined || cut === 'SDR' || cut === videoRange, `of ${length} bytes`)
    }
  }
})

t.test('the format of samples and the start of the VUI are in the set (Annex E)', async (t) => {
  const sequence = (name: string) => {
    const [, hex] = ENCODED.find(([each]) => each.includes(name))!
    return decodeH264Sequence(Buffer.from(hex, 'hex'))
  }
  t.match(sequence('baseline'), { chromaFormat: 1, lumaBitDepth: 8, chromaBitDepth: 8 })
  t.match(sequence('10 bit 4:2:2'), {
    chromaFormat: 2,
    lumaBitDepth: 10,
    chromaBitDepth: 10,
    signal: { sampleAspectRatio: { width: 1, height: 1 } },
  })
  const extended = '6742c00ada11effc0124013040000003004000000c83c489a8'
  t.match(decodeH264Sequence(Buffer.from(extended, 'hex')), {
    signal: { sampleAspectRatio: { width: 73, height: 76 } },
  })
  t.match(sequence('4:4:4'), { chromaFormat: 3, lumaBitDepth: 8 })
  t.strictSame(decodeH264Sequence(Buffer.from(RANGES[0][1], 'hex'))?.signal.color, {
    primaries: 9,
    transfer: 16,
    matrix: 9,
    fullRange: false,
  })
})

t.test('decodeH264Sps parses syntax that encoders rarely use', async (t) => {
  const head = (profile: number) => new BitWriter().u(8, profile).u(8, 0).u(8, 31).ue(0)
  const tail = (bits: BitWriter) => bits.ue(4).u(1, 0).ue(39).ue(29).u(1, 1).u(1, 1).u(1, 0).u(1, 0)

  t.test('a set with picture order count type 1 parses (7.3.2.1.1)', async (t) => {
    const cycle = head(77).ue(0).ue(1).u(1, 0).se(-3).se(5).ue(3).se(1).se(-1).se(100)
    t.match(decodeH264Sps(nalUnit([0x67], tail(cycle))), { width: 640, height: 480 })
    const long = head(77).ue(0).ue(1).u(1, 0).se(0).se(0).ue(256)
    t.equal(decodeH264Sps(nalUnit([0x67], tail(long))), undefined)
  })

  t.test('a set with frame_num of more than 16 bits is rejected (7.4.2.1.1)', async (t) => {
    const numbered = (log2Minus4: number) =>
      nalUnit(
        [0x67],
        head(66).ue(log2Minus4).ue(2).ue(4).u(1, 0).ue(39).ue(29).u(1, 0).u(4, 0b0100),
      )
    t.match(decodeH264Sps(numbered(12)), { width: 640, height: 960 })
    t.match(decodeH264SliceSyntax(numbered(12)), { frameNumberBits: 16 })
    for (const log2Minus4 of [13, 2 ** 31]) {
      t.equal(decodeH264Sps(numbered(log2Minus4)), undefined)
      t.equal(decodeH264SliceSyntax(numbered(log2Minus4)), undefined)
    }
  })

  t.test('a monochrome set with scaling lists that end early parses (7.3.2.1.1.1)', async (t) => {
    const bits = head(100).ue(0).ue(0).ue(0).u(1, 0).u(1, 1)
    bits.u(1, 1).se(-8)
    for (let list = 1; list < 8; list++) bits.u(1, 0)
    t.match(decodeH264Sps(nalUnit([0x67], tail(bits.ue(0).ue(2)))), { width: 640, height: 480 })
  })

  t.test('an impossible frame rate is ignored (E.2.1)', async (t) => {
    const vui = (units: number, scale: number) =>
      nalUnit(
        [0x67],
        head(66)
          .ue(0)
          .ue(2)
          .ue(1)
          .u(1, 0)
          .ue(39)
          .ue(29)
          .u(3, 0b110)
          .u(1, 1)
          .u(4, 0)
          .u(1, 1)
          .u(32, units)
          .u(32, scale),
      )
    t.equal(decodeH264Sps(vui(1, 50))?.frameRate, 25)
    t.equal(decodeH264Sps(vui(0, 50))?.frameRate, undefined)
    t.equal(decodeH264Sps(vui(1, 0))?.frameRate, undefined)
    t.equal(decodeH264Sps(vui(1, 0xffffffff))?.frameRate, undefined)
  })

  t.test(
    'a set with a picture larger than any level, or cropped to nothing, is rejected',
    async (t) => {
      const size = (width: number, crop: number) =>
        nalUnit(
          [0x67],
          head(66)
            .ue(0)
            .ue(2)
            .ue(1)
            .u(1, 0)
            .ue(width)
            .ue(29)
            .u(3, 0b111)
            .ue(crop)
            .ue(0)
            .ue(0)
            .ue(0)
            .u(1, 0),
        )
      t.match(decodeH264Sps(size(39, 10)), { width: 620 })
      t.equal(decodeH264Sps(size(39, 320)), undefined)
      t.equal(decodeH264Sps(size(3000, 0)), undefined)
    },
  )
})

t.test('decodeH264Sps accepts any bytes without throwing', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.constantFrom(66, 100, 244), (bytes, idc) => {
      decodeH264Sps(Buffer.from([0x67, idc, ...bytes]))
    }),
    { numRuns: 2000 },
  )
})

const slice = (header: number, firstMacroblock: number, type: number): Buffer =>
  nalUnit([header], new BitWriter().ue(firstMacroblock).ue(type).u(32, 0xdeadbeef))
const idr = slice(0x65, 0, 7)
const intra = slice(0x41, 0, 7)
const predicted = slice(0x41, 0, 5)
const aud = Buffer.from([0x09, 0xf0])
const sps = Buffer.from(ENCODED[0][1], 'hex')
const sei = (...messages: [type: number, payload: BitWriter][]): Buffer => {
  const bits = new BitWriter()
  for (const [type, { bytes }] of messages) {
    for (const value of [type, bytes.length]) {
      for (let left = value; ; left -= 255) {
        bits.u(8, Math.min(left, 255))
        if (left < 255) break
      }
    }
    for (const byte of bytes) bits.u(8, byte)
  }
  return nalUnit([0x06], bits)
}
const recovery = (frames: number) => new BitWriter().ue(frames).u(4, 0b1000)

t.test(
  'random access points are IDR pictures and I pictures with an exact recovery point (7.4.1.2.4, D.2.8)',
  async (t) => {
    const cases: [title: string, nals: Buffer[], expected: boolean][] = [
      ['an IDR picture', [aud, sps, idr], true],
      ['a P picture', [aud, predicted], false],
      ['an I picture that says nothing of recovery', [aud, sps, intra], false],
      ['an I picture with recovery at once', [aud, sps, sei([6, recovery(0)]), intra], true],
      ['the slice type of an I slice alone', [sps, sei([6, recovery(0)]), slice(0x41, 0, 2)], true],
      ['recovery within frames: intra refresh', [aud, sei([6, recovery(30)]), predicted], false],
      ['recovery at once on a P picture', [aud, sei([6, recovery(0)]), predicted], false],
      ['an I picture with recovery later', [aud, sei([6, recovery(1)]), intra], false],
      [
        'recovery behind long messages',
        [
          sei([5, new BitWriter().u(8 * 700, 0)], [300, new BitWriter().u(8, 7)], [6, recovery(0)]),
          intra,
        ],
        true,
      ],
      ['recovery in a second SEI', [sei([1, recovery(9)]), sei([6, recovery(0)]), intra], true],
      ['a later slice of an IDR picture', [slice(0x65, 40, 7)], false],
      ['no slice at all', [aud, sps], false],
      ['an IDR picture after another', [predicted, idr], false],
      ['an empty NAL unit before', [Buffer.alloc(0), idr], true],
      ['an SEI that promises more than it holds', [Buffer.from([6, 6, 200]), intra], false],
    ]
    for (const [title, nals, expected] of cases) {
      t.test(title, async (t) => {
        const bytes = byteStream(...nals)
        t.equal(inspectH264AccessUnit(bytes).randomAccess, expected)
      })
    }
  },
)

t.test('preferred transfer characteristics come from an SEI message (Annex D)', async (t) => {
  const preferredTransfer = (...nals: Buffer[]) =>
    inspectH264AccessUnit(byteStream(...nals, idr)).preferredTransfer
  // As x264 writes it with alternative-transfer=arib-std-b67.
  t.equal(preferredTransfer(sps, Buffer.from('0693011280', 'hex')), 18)
  t.equal(preferredTransfer(sps, sei([5, new BitWriter().u(8, 0)])), undefined)
  t.equal(preferredTransfer(sps, sei([147, new BitWriter()])), undefined, 'an empty one')
})

const pps = Buffer.from('68ce0fc8', 'hex')

t.test(
  'parameter sets of an access unit are listed with their ids (7.3.2.1, 7.3.2.2)',
  async (t) => {
    const { parameterSets } = inspectH264AccessUnit(byteStream(aud, sps, pps, idr))
    t.strictSame(parameterSets, [
      { kind: 'sps', id: 0, nal: sps },
      { kind: 'pps', id: 0, nal: pps },
    ])
    const third = nalUnit([0x68], new BitWriter().ue(3).ue(0).u(6, 0))
    t.match(inspectH264AccessUnit(byteStream(third, idr)).parameterSets, [{ id: 3 }])
    t.strictSame(inspectH264AccessUnit(byteStream(aud, idr, sps)).parameterSets, [], 'from before')
  },
)

t.test('the inspection accepts any NAL units without throwing', async () => {
  const nal = fc
    .tuple(fc.constantFrom(...[6, 7, 8, 1, 5, 9]), fc.uint8Array({ maxLength: 40 }))
    .map(([type, body]) => Buffer.from([type, ...body]))
  fc.assert(
    fc.property(fc.array(nal, { maxLength: 6 }), (nals) => {
      const { parameterSets } = inspectH264AccessUnit(byteStream(...nals))
      return parameterSets.every(({ id }) => Number.isSafeInteger(id))
    }),
    { numRuns: 2000 },
  )
})
