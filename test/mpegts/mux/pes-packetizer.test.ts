import t from 'tap'
import { insertPts, packetizePes } from '../../../src/mpegts/mux/pes-packetizer.ts'
import { decodePesHeader, pesBytes } from '../../../src/mpegts/pes.ts'

const FIRST = Buffer.alloc(188, 0xff)
FIRST.writeUInt32BE(0x47410110)

for (const [stuffing, ptsTicks] of [
  [250, 900_000],
  [251, undefined],
] as const) {
  t.test(`${stuffing} bytes of stuffing in a PES header without a PTS`, async (t) => {
    const header = Buffer.from([0, 0, 1, 0xc0, 0, 0, 0x80, 0, stuffing])
    const media = Buffer.from('media')
    const pes = Buffer.concat([header, Buffer.alloc(stuffing, 0xff), media])
    pes.writeUInt16BE(pes.length - 6, 4)
    const chunks = insertPts([packetizePes(FIRST, pes)], 900_000)
    const got = pesBytes(chunks)
    t.equal(decodePesHeader(got)?.ptsTicks, ptsTicks)
    t.same(got.subarray(9 + got[8]!), media)
  })
}
