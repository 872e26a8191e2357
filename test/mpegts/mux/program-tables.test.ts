import t from 'tap'
import { encodePsi } from '../../../src/mpegts/mux/program-tables.ts'
import type { Program, Track } from '../../../src/mpegts/track.ts'
import { readPackets, readPat, readPmt, readSection } from '../../support/ts-reader.ts'
import { AUDIO, VIDEO } from '../../hls/source.ts'

const PROGRAM: Program = { programNumber: 7, pcrPid: 256, tracks: [VIDEO, AUDIO] }
const descriptor = (tag: number, ...body: number[]) => Buffer.from([tag, body.length, ...body])

t.test(
  'PAT and PMT are those that ffmpeg writes for the same program (ISO/IEC 13818-1 2.4.4)',
  async (t) => {
    // Captured from ffmpeg 5.1: H.264 and AAC, -f mpegts.
    const [pat, pmt] = readPackets(encodePsi({ ...PROGRAM, programNumber: 1 }, 0)).map(readSection)
    t.equal(pat!.toString('hex'), '00b00d0001c100000001f0002ab104b2')
    t.equal(pmt!.toString('hex'), '02b0170001c10000e100f0001be100f0000fe101f0002f44b99b')
  },
)

t.test('PAT and PMT have one packet each, with one program and its carried tracks', async (t) => {
  const packets = readPackets(encodePsi(PROGRAM, 5))
  t.equal(packets.length, 2)
  t.same(readPat(packets[0]!), [{ programNumber: 7, pmtPid: 0x1000 }])
  t.same(readPmt(packets[1]!), {
    version: 5,
    pcrPid: 256,
    streams: [
      { streamType: 0x1b, pid: 256, descriptors: '' },
      { streamType: 0x0f, pid: 257, descriptors: '' },
    ],
  })
})

t.test('the PMT has the descriptors that players use, if they fit', async (t) => {
  const language = descriptor(0x0a, ...Buffer.from('eng'), 0)
  const registration = descriptor(0x05, ...Buffer.from('HEVC'))
  const withDescriptors = (...descriptors: Buffer[]) =>
    readPmt(
      readPackets(
        encodePsi(
          { ...PROGRAM, tracks: [VIDEO, { ...AUDIO, descriptors: Buffer.concat(descriptors) }] },
          0,
        ),
      )[1]!,
    ).streams[1]!.descriptors
  t.equal(
    withDescriptors(descriptor(0x52, 1), language, descriptor(0x28, 1, 2, 3, 4), registration),
    Buffer.concat([language, registration]).toString('hex'),
  )
  t.equal(withDescriptors(language, Buffer.from([0x05, 200, 1])), language.toString('hex'))
  t.equal(withDescriptors(descriptor(0x0a, ...Array<number>(180).fill(1))), '', 'one packet is all')
})

t.test('the PMT points to the metadata of the program (ISO/IEC 13818-1 2.6.58)', async (t) => {
  const id3 = (...descriptors: Buffer[]): Track => ({
    ...({ pid: 258, streamType: 0x15, kind: 'data', codec: 'unknown' } as const),
    descriptors: Buffer.concat(descriptors),
  })
  const programInfo = (...data: Track[]) => {
    const section = readSection(
      readPackets(encodePsi({ ...PROGRAM, tracks: [VIDEO, AUDIO, ...data] }, 0))[1]!,
    )
    return section.toString('hex', 12, 12 + (section.readUInt16BE(10) & 0x0fff))
  }
  const metadata = descriptor(
    0x26,
    255,
    255,
    ...Buffer.from('ID3 '),
    255,
    ...Buffer.from('ID3 '),
    3,
    15,
  )
  t.equal(programInfo(id3(metadata)), '250fffff49443320ff49443320031f0007')
  t.equal(programInfo(id3(descriptor(0x26, 1, 0, 16, 3, 15))), '2507010010031f0007')
  t.equal(programInfo(id3(descriptor(0x26, 255, 255, 73))), '', 'broken off')
  t.equal(programInfo(id3(descriptor(0x05, ...Buffer.from('ID3 ')))), '', 'not described')
  const many = Array.from({ length: 9 }, (_, index) => ({ ...id3(metadata), pid: 300 + index }))
  t.equal(programInfo(...many), '250fffff49443320ff49443320031f0007', 'once')
})
