import * as fc from 'fast-check'
import t from 'tap'
import { crc32Mpeg2 } from '../../../src/binary/crc32.ts'
import { Demuxer } from '../../../src/mpegts/demux/demuxer.ts'
import { decodeSpliceInfo, isEncryptedSplice } from '../../../src/mpegts/psi/splice-info.ts'
import { demux } from '../demux.ts'
import {
  segmentationDescriptor,
  spliceInsert,
  spliceSection,
  timeSignal,
} from '../splice-builder.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

const decode = (base64: string) => {
  const section = Buffer.from(base64, 'base64')
  return { section, info: decodeSpliceInfo(section) }
}

t.test('reads the sample messages of the standard (ANSI/SCTE 35 14)', async (t) => {
  const upid = (hex: string) => ({ upidType: 8, upid: Buffer.from(hex, 'hex'), canceled: false })
  const placement = { eventId: 0x4800008e, ...upid('000000002ca0a18a') }
  const cases: [title: string, base64: string, info: object][] = [
    [
      '14.1 time_signal, placement opportunity start',
      '/DA0AAAAAAAA///wBQb+cr0AUAAeAhxDVUVJSAAAjn/PAAGlmbAICAAAAAAsoKGKNAIAmsnRfg==',
      {
        ptsTicks: 0x072bd0050,
        command: {
          type: 'time-signal',
          segmentations: [{ ...placement, typeId: 0x34, durationTicks: 0x0001a599b0 }],
        },
      },
    ],
    [
      '14.2 splice_insert',
      '/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=',
      {
        ptsTicks: 0x07369c02e,
        command: {
          type: 'splice-insert',
          eventId: 0x4800008f,
          canceled: false,
          outOfNetwork: true,
          break: { durationTicks: 0x00052ccf5, autoReturn: true },
        },
      },
    ],
    [
      '14.3 time_signal, placement opportunity end',
      '/DAvAAAAAAAA///wBQb+dGKQoAAZAhdDVUVJSAAAjn+fCAgAAAAALKChijUCAKnMZ1g=',
      {
        ptsTicks: 0x0746290a0,
        command: { type: 'time-signal', segmentations: [{ ...placement, typeId: 0x35 }] },
      },
    ],
    [
      '14.4 time_signal, program end and start',
      '/DBIAAAAAAAA///wBQb+ek2ItgAyAhdDVUVJSAAAGH+fCAgAAAAALMvDRBEAAAIXQ1VFSUgAABl/nwgIAAAAACyk26AQAACZcuND',
      {
        ptsTicks: 0x07a4d88b6,
        command: {
          type: 'time-signal',
          segmentations: [
            { eventId: 0x48000018, typeId: 0x11, ...upid('000000002ccbc344') },
            { eventId: 0x48000019, typeId: 0x10, ...upid('000000002ca4dba0') },
          ],
        },
      },
    ],
  ]
  for (const [title, base64, expected] of cases) {
    const { section, info } = decode(base64)
    t.equal(crc32Mpeg2(section), 0, `${title}: checksum`)
    t.strictSame(info, { section, ...expected }, title)
  }
})

t.test('reads sections of real encoders', async (t) => {
  const cases: [title: string, base64: string, info: object][] = [
    [
      'a sign of life',
      '/DARAAAAAAAAAP/wAAAAAHpPv/8=',
      { ptsTicks: undefined, command: { type: 'splice-null' } },
    ],
    [
      'an immediate one',
      '/DAgAAAAAAAAAP/wDwUAAAABf//+AFJlwAABAAAAAMOOklg=',
      {
        ptsTicks: undefined,
        command: { eventId: 1, break: { durationTicks: 5_400_000, autoReturn: true } },
      },
    ],
    [
      'of an older sender, with a command of unknown length and stuffing',
      '/DAeAAAAAAAAAP///wViAA/nf18ACQAAAAAskJv+YPtE',
      {
        ptsTicks: undefined,
        command: { eventId: 1644171239, outOfNetwork: false, break: undefined },
      },
    ],
    [
      'with an adjustment of its time (9.6)',
      '/DAlAAAAAA4QAP/wFAUwLMaof+//z0uXAP4AUmXAwlQBAQAAm2zCrQ==',
      { ptsTicks: 0x1cf4b9700 + 3600, command: { eventId: 0x302cc6a8 } },
    ],
  ]
  for (const [title, base64, expected] of cases) {
    const { section, info } = decode(base64)
    t.equal(crc32Mpeg2(section), 0, `${title}: checksum`)
    t.match(info, expected, title)
    if ('ptsTicks' in expected) t.equal(info?.ptsTicks, expected.ptsTicks, title)
  }
})

t.test('adds pts_adjustment modulo 2^33 (9.6)', async (t) => {
  const section = spliceInsert({ eventId: 1, ptsTicks: 2 ** 33 - 1 }, { adjustmentTicks: 2 ** 32 })
  t.equal(decodeSpliceInfo(section)?.ptsTicks, 2 ** 32 - 1)
})

t.test('takes the first time of a splice_insert() by components (9.7.3)', async (t) => {
  // Two components, the first without a time.
  const command = hex('00000007 7f 8f 02 017f 02fe00000100 00010000')
  t.match(decodeSpliceInfo(spliceSection(5, command)), {
    ptsTicks: 0x100,
    command: { eventId: 7, outOfNetwork: true },
  })
})

t.test('reads segmentation descriptors of single components (10.3.3)', async (t) => {
  const data = hex('43554549 00000009 7f 3f 01 05fe00000000 0000 300000')
  const descriptors = Buffer.concat([Buffer.from([2, data.length]), data])
  t.match(decodeSpliceInfo(timeSignal(900_000, [], { descriptors })), {
    command: { segmentations: [{ eventId: 9, typeId: 0x30 }] },
  })
})

t.test('finds the descriptors behind a command of unknown length', async (t) => {
  const section = timeSignal(90_000, [{ eventId: 3, typeId: 0x10 }], { unknownLength: true })
  t.match(decodeSpliceInfo(section), {
    ptsTicks: 90_000,
    command: { segmentations: [{ eventId: 3, typeId: 0x10 }] },
  })
})

t.test('skips descriptors of other kinds', async (t) => {
  const foreign = Buffer.from(segmentationDescriptor({ eventId: 1 }))
  foreign.write('ABCD', 2)
  const descriptors = Buffer.concat([
    ...[Buffer.from([0x00, 0x00]), foreign],
    segmentationDescriptor({ eventId: 2, canceled: true }),
  ])
  t.match(decodeSpliceInfo(timeSignal(1, [], { descriptors }))?.command, {
    segmentations: [{ eventId: 2, canceled: true }],
  })
})

t.test('gives the type of other commands', async (t) => {
  t.strictSame(decodeSpliceInfo(spliceSection(0xff, Buffer.from('CUEI')))?.command, {
    type: 'other',
    commandType: 0xff,
  })
})

t.test('recognizes encrypted sections and rejects unknown protocol versions', async (t) => {
  t.ok(isEncryptedSplice(spliceInsert({ eventId: 1 }, { encrypted: true })))
  t.notOk(isEncryptedSplice(spliceInsert({ eventId: 1 })))
  t.equal(decodeSpliceInfo(spliceInsert({ eventId: 1 }, { protocolVersion: 1 })), undefined)
})

const ticks = fc.nat(2 ** 33 - 1)
const id = fc.nat(2 ** 32 - 1)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

t.test('reads every section that the builder writes', async () => {
  const planned = fc.record({ durationTicks: ticks, autoReturn: fc.boolean() })
  fc.assert(
    fc.property(
      id,
      fc.boolean(),
      maybe(ticks),
      maybe(planned),
      (eventId, out, ptsTicks, planned) => {
        const info = decodeSpliceInfo(spliceInsert({ eventId, out, ptsTicks, break: planned }))
        const command = info?.command
        return (
          info?.ptsTicks === ptsTicks &&
          command?.type === 'splice-insert' &&
          command.eventId === eventId &&
          command.outOfNetwork === out &&
          command.break?.durationTicks === planned?.durationTicks &&
          command.break?.autoReturn === planned?.autoReturn
        )
      },
    ),
  )
  const segmentation = fc.record({
    eventId: id,
    typeId: fc.nat(255),
    durationTicks: maybe(fc.nat(2 ** 40 - 1)),
    upid: fc.uint8Array({ maxLength: 40 }),
  })
  fc.assert(
    fc.property(
      maybe(ticks),
      fc.array(segmentation, { maxLength: 4 }),
      (ptsTicks, segmentations) => {
        const info = decodeSpliceInfo(timeSignal(ptsTicks, segmentations))
        const read = info?.command.type === 'time-signal' ? info.command.segmentations : []
        return (
          info?.ptsTicks === ptsTicks &&
          read.length === segmentations.length &&
          read.every(
            ({ eventId, typeId, durationTicks, upid }, index) =>
              eventId === segmentations[index]!.eventId &&
              typeId === segmentations[index]!.typeId &&
              durationTicks === segmentations[index]!.durationTicks &&
              upid.equals(segmentations[index]!.upid),
          )
        )
      },
    ),
  )
})

t.test('accepts any bytes without throwing, and reads nothing behind the section', async () => {
  const sample = fc.constantFrom(
    spliceInsert({ eventId: 1, ptsTicks: 1, break: { durationTicks: 1, autoReturn: true } }),
    timeSignal(5, [{ eventId: 1, durationTicks: 9, upid: Buffer.alloc(9) }, { eventId: 2 }]),
    spliceSection(5, hex('00000007 7f 8f ff 017f')),
  )
  const damage = fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 8 })
  fc.assert(
    fc.property(sample, damage, fc.nat(100), (sample, damage, length) => {
      const section = Buffer.from(sample.subarray(0, Math.max(1, sample.length - (length % 40))))
      for (const [at, value] of damage) section[at % section.length] = value
      const info = decodeSpliceInfo(section)
      const segmentations = info?.command.type === 'time-signal' ? info.command.segmentations : []
      const pts = info?.ptsTicks ?? 0
      return (
        pts >= 0 &&
        pts < 2 ** 33 &&
        Number.isInteger(pts) &&
        segmentations.every(({ upid }) => upid.length <= section.length)
      )
    }),
    { numRuns: 3000 },
  )
})

const PMT = [
  { pid: 0x101, streamType: 0x0f },
  { pid: 0x1f0, streamType: 0x86 },
]
const audio = (ptsTicks: number) => pesPacket(Buffer.alloc(100, 1), { ptsTicks, streamId: 0xc0 })

const splicesOf = (ts: TsBuilder, demuxer = new Demuxer()) =>
  demux(ts.bytes, [1316], demuxer).flatMap((output) =>
    output.type === 'splice' ? [output.splice] : [],
  )

t.test('the demuxer puts out splice information of stream type 86 (8.1)', async (t) => {
  t.test('splice information is put out on arrival, with its section', async (t) => {
    const section = spliceInsert({ eventId: 1, ptsTicks: 450_000 })
    const ts = new TsBuilder().program(PMT).unit(0x101, audio(90_000)).sections(0x1f0, section)
    const outputs = demux(ts.unit(0x101, audio(180_000)).bytes)
    t.match(outputs, [
      { type: 'program' },
      { type: 'unit', unit: { ptsTicks: 90_000 } },
      { type: 'splice', splice: { section, ptsTicks: 450_000 } },
      { type: 'unit', unit: { ptsTicks: 180_000 } },
    ])
  })

  t.test('splice times are unwrapped past 33 bits like those of units', async (t) => {
    const wrap = 2 ** 33
    const ts = new TsBuilder()
      .program(PMT)
      .unit(0x101, audio(wrap - 90_000))
      .sections(0x1f0, spliceInsert({ eventId: 1, ptsTicks: wrap + 90_000 }))
    t.match(splicesOf(ts), [{ ptsTicks: wrap + 90_000 }])
  })

  t.test('splice information may span packets, up to 4096 bytes', async (t) => {
    const upid = Buffer.alloc(200, 7)
    const segmentations = Array.from({ length: 15 }, (_, eventId) => ({ eventId, upid }))
    const ts = new TsBuilder().program(PMT).sections(0x1f0, timeSignal(1, segmentations))
    t.equal(splicesOf(ts)[0]?.section.length, 14 + 5 + 2 + 15 * 217 + 4)
  })

  t.test('repeated splice information is put out once, except after a long time', async (t) => {
    const demuxer = new Demuxer()
    const now = spliceInsert({ eventId: 1 })
    const ts = new TsBuilder().program(PMT)
    for (const sec of [1, 2, 8, 17, 30]) {
      ts.unit(0x101, audio(sec * 90_000)).sections(0x1f0, now, spliceInsert({ eventId: sec }))
    }
    const ids = splicesOf(ts, demuxer).map(({ command }) =>
      command.type === 'splice-insert' ? command.eventId : undefined,
    )
    t.strictSame(ids, [1, 2, 8, 17, 1, 30])
    t.match(demuxer.stats, { spliceSections: 10 })
  })

  t.test('encrypted, damaged and malformed splice information is dropped', async (t) => {
    const demuxer = new Demuxer()
    const damaged = spliceInsert({ eventId: 1, ptsTicks: 1 })
    damaged[15]! ^= 1
    const ts = new TsBuilder()
      .program(PMT)
      .sections(0x1f0, spliceInsert({ eventId: 1 }, { encrypted: true }))
      .sections(0x1f0, damaged)
      .sections(0x1f0, spliceInsert({ eventId: 1 }, { protocolVersion: 9 }))
      .sections(0x1f0, hex('fc3000'))
    t.same(splicesOf(ts, demuxer), [])
    t.match(demuxer.stats, {
      ...{ spliceSections: 2, encryptedSplices: 1, malformedSplices: 1, psiCrcErrors: 2 },
    })
  })

  t.test('splice information on other PIDs is ignored', async (t) => {
    const ts = new TsBuilder().program(PMT).sections(0x1f1, spliceInsert({ eventId: 1 }))
    t.same(splicesOf(ts), [])
  })
})
