import t from 'tap'
import { encodeH264Still } from '../../src/codec/h264-still.ts'
import { H264Pictures } from '../../src/codec/h264-pictures.ts'
import { BitWriter, byteStream, nalUnit } from './nal-builder.ts'

interface Options {
  readonly arithmetic?: boolean
  readonly orderType?: number
  readonly fields?: boolean
}

/** Main profile, 16 x 16 macroblocks; frame_num of 4 bits, pic_order_cnt_lsb of 4 bits. */
function sequence({ orderType = 0, fields = false }: Options): Buffer {
  const bits = new BitWriter().u(8, 77).u(8, 0).u(8, 30).ue(0).ue(0).ue(orderType)
  if (orderType === 0) bits.ue(0)
  if (orderType === 1) bits.u(1, 0).se(0).se(0).ue(0)
  bits
    .ue(1)
    .u(1, 0)
    .ue(15)
    .ue(15)
    .u(1, fields ? 0 : 1)
  if (fields) bits.u(1, 0)
  return nalUnit([0x67], bits.u(1, 1).u(1, 0).u(1, 0))
}

const pictureSet = ({ arithmetic = false }: Options) =>
  nalUnit(
    [0x68],
    new BitWriter()
      .ue(0)
      .ue(0)
      .u(1, arithmetic ? 1 : 0)
      .u(1, 0)
      .ue(0)
      .ue(0)
      .ue(0)
      .u(1, 0)
      .u(2, 0)
      .se(0)
      .se(0)
      .se(0)
      .u(1, 1)
      .u(1, 0)
      .u(1, 0),
  )

const KEY_SLICE = nalUnit([0x65], new BitWriter().ue(0).ue(7).ue(0).u(4, 0).ue(0).u(4, 0))

const slice = (frameNumber: number, order: number) =>
  nalUnit([0x41], new BitWriter().ue(0).ue(5).ue(0).u(4, frameNumber).u(4, order))

t.test(
  'a still picture begins a frame of its own, and no other refers to it (7.4.3)',
  async (t) => {
    for (const arithmetic of [false, true]) {
      const sets = [sequence({}), pictureSet({ arithmetic })]
      const key = byteStream(...sets, KEY_SLICE)
      for (const [frameNumber, order] of [
        [1, 2],
        [15, 14],
        [15, 15],
      ] as const) {
        const latest = slice(frameNumber, order)
        const still = encodeH264Still(key, byteStream(latest))!
        t.equal(still[0], 0x01, 'nal_ref_idc 0')
        const pictures = new H264Pictures()
        pictures.pushSet({ kind: 'sps', id: 0, nal: sets[0]! })
        pictures.pushSet({ kind: 'pps', id: 0, nal: sets[1]! })
        t.ok(pictures.pushSlice(latest))
        const picture = pictures.pushSlice(still)
        t.equal(picture?.startsFrame, true)
        t.equal(((picture?.order ?? 0) + 16) % 16, (order + 1) % 16)
        t.ok(pictures.pushSlice(slice((frameNumber + 1) % 16, (order + 2) % 16)))
      }
    }
  },
)

t.test(
  '256 skipped macroblocks are a run, or as decoders of arithmetic coding read them',
  async (t) => {
    const of = (options: Options) =>
      encodeH264Still(
        byteStream(sequence(options), pictureSet(options), KEY_SLICE),
        byteStream(slice(1, 2)),
      )?.toString('hex')
    // ffmpeg decodes such pictures, of both kinds, to the picture before.
    t.equal(of({}), '019a4781920080c0')
    t.equal(of({ arithmetic: true }), '019a47a0c97f0041c0')
    t.equal(of({ fields: true }), undefined)
    t.equal(of({ orderType: 1 }), undefined)
    t.equal(encodeH264Still(Buffer.alloc(0), Buffer.alloc(0)), undefined)
  },
)
