import * as fc from 'fast-check'
import t from 'tap'
import { TIME_MODULUS } from '../../src/mpegts/timestamps.ts'
import { movePcr, movePesTimes, readPcr, readPesTimes } from '../../src/pace/packet-times.ts'

const ticks = () => fc.integer({ min: 0, max: TIME_MODULUS - 1 })

/** A packet with an adaptation field of flags, PCR and one byte of stuffing. */
function packetWithPcr(baseTicks: number, extension: number): Buffer {
  const packet = Buffer.alloc(188, 0xaa)
  packet.set([0x47, 0x01, 0x00, 0x30, 8, 0x10])
  const bits = (BigInt(baseTicks) << 15n) | (0x3fn << 9n) | BigInt(extension)
  packet.writeUIntBE(Number(bits >> 24n), 6, 3)
  packet.writeUIntBE(Number(bits & 0xffffffn), 9, 3)
  return packet
}

// PTS 126000 as ffmpeg 5.1 writes it, and a DTS of 216000, so that the two differ.
const PES_HEAD = '000001e0000080c00a31 0007 d861 11 000d 9781'.replaceAll(' ', '')

function packetWithPes(): Buffer {
  const packet = Buffer.alloc(188, 0xaa)
  packet.set([0x47, 0x41, 0x00, 0x10])
  packet.set(Buffer.from(PES_HEAD, 'hex'), 4)
  return packet
}

t.test('reads the base of a PCR (ISO/IEC 13818-1 2.4.3.5)', async (t) => {
  fc.assert(
    fc.property(ticks(), fc.integer({ min: 0, max: 299 }), (base, extension) => {
      return readPcr(packetWithPcr(base, extension), 0) === base
    }),
  )
  const without = packetWithPcr(1, 1)
  without[5] = 0
  t.equal(readPcr(without, 0), undefined, 'PCR flag clear')
  const short = packetWithPcr(1, 1)
  short[4] = 6
  t.equal(readPcr(short, 0), undefined, 'an adaptation field too short for it')
  const payloadOnly = packetWithPcr(1, 1)
  payloadOnly[3] = 0x10
  t.equal(readPcr(payloadOnly, 0), undefined, 'no adaptation field')
})

t.test('moves a PCR modulo 2^33 and keeps its extension', async () => {
  fc.assert(
    fc.property(ticks(), fc.integer({ min: 0, max: 299 }), ticks(), (base, extension, shift) => {
      const packet = packetWithPcr(base, extension)
      movePcr(packet, 0, shift)
      return packet.equals(packetWithPcr((base + shift) % TIME_MODULUS, extension))
    }),
  )
})

t.test('reads and moves PTS and DTS, wherever the packet lies (2.4.3.7)', async (t) => {
  const [lead, packet] = [Buffer.alloc(13), packetWithPes()]
  const bytes = Buffer.concat([lead, packet])
  t.same(readPesTimes(bytes, 13), { isVideo: true, ptsTicks: 126_000, dtsTicks: 216_000 })
  movePesTimes(bytes, 13, 2 ** 32 + 12_345)
  t.same(readPesTimes(bytes, 13), {
    isVideo: true,
    ptsTicks: 126_000 + 2 ** 32 + 12_345,
    dtsTicks: 216_000 + 2 ** 32 + 12_345,
  })
  movePesTimes(bytes, 13, TIME_MODULUS - 2 ** 32 - 12_345)
  t.ok(bytes.equals(Buffer.concat([lead, packet])), 'back where it was, with all other bits')
})

t.test('leaves a packet without a valid PES header unchanged', async (t) => {
  const continuation = packetWithPes()
  continuation[1] = 0x01
  const cut = Buffer.alloc(188, 0xff)
  // An adaptation field that leaves 12 bytes: the header ends in the next packet.
  cut.set([0x47, 0x41, 0x00, 0x30, 171, 0])
  cut.set(Buffer.from(PES_HEAD, 'hex').subarray(0, 12), 176)
  const section = Buffer.alloc(188, 0xff)
  section.set([0x47, 0x40, 0x00, 0x10, 0x00, 0x00, 0xb0, 0x0d])
  const malformed = packetWithPes()
  malformed.set([0x30, 250], 3)
  for (const packet of [continuation, cut, section, malformed]) {
    const before = Buffer.from(packet)
    t.equal(readPesTimes(packet, 0), undefined)
    movePesTimes(packet, 0, 90_000)
    movePcr(packet, 0, 90_000)
    t.ok(packet.equals(before))
  }
})

t.test('no packet causes an exception or changes a neighbor', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 188, maxLength: 188 }), ticks(), (random, shift) => {
      const bytes = Buffer.concat([Buffer.alloc(188), Buffer.from(random), Buffer.alloc(188)])
      bytes[188] = 0x47
      movePcr(bytes, 188, shift)
      movePesTimes(bytes, 188, shift)
      return (
        bytes.subarray(0, 188).every((byte) => byte === 0) &&
        bytes.subarray(376).every((byte) => byte === 0)
      )
    }),
    { numRuns: 2000 },
  )
})
