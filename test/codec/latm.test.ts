import * as fc from 'fast-check'
import t from 'tap'
import { BitReader } from '../../src/binary/bit-reader.ts'
import { decodeAdtsHeader } from '../../src/codec/adts.ts'
import {
  encodeAudioSpecificConfig,
  readAudioSpecificConfig,
} from '../../src/codec/audio-specific-config.ts'
import { LatmReader } from '../../src/codec/latm.ts'
import { frame, loas, STEREO, type MuxFields } from './latm-builder.ts'
import { BitWriter } from './nal-builder.ts'

/** Fields of an AudioSpecificConfig. */
const config = (fields: string) => fields.replaceAll(' ', '')

/** Payloads of the ADTS frames in these bytes. */
function payloadsOf(adts: Buffer): Buffer[] {
  const payloads: Buffer[] = []
  for (let at = 0; at < adts.length;) {
    const header = decodeAdtsHeader(adts, at)
    if (header === undefined) throw new Error(`no ADTS header at ${at}`)
    payloads.push(adts.subarray(at + 7, at + header.sizeBytes))
    at += header.sizeBytes
  }
  return payloads
}

t.test('LATM payloads at any bit offset become the same ADTS payloads', async (t) => {
  const frames = [frame(1, 1), frame(0xab, 254), frame(3, 255), frame(4, 256), frame(0xff, 1000)]
  const configs: MuxFields[] = [
    {},
    { version: 1 },
    { otherData: 300, crc: true },
    { version: 1, otherData: 9 },
    // A length may include an extension behind the parsed part (1.6.2.1).
    { version: 1, audio: `${STEREO}${(0x2b7).toString(2)}00101` },
  ]
  for (const fields of configs) {
    const reading = new LatmReader().push(Buffer.concat(frames.map((it) => loas(fields, it))))
    if (reading.type !== 'adts') throw new Error(`${reading.type}: ${JSON.stringify(fields)}`)
    t.strictSame(payloadsOf(reading.bytes), frames)
    const expected = { codecString: 'mp4a.40.2', sampleRate: 48_000, channels: 2 }
    t.strictSame(decodeAdtsHeader(reading.bytes, 0)?.parameters, expected)
    t.strictSame(reading.audio.parameters, expected)
  }
})

t.test('a StreamMuxConfig holds until the next one (useSameStreamMux)', async (t) => {
  const reader = new LatmReader()
  t.same(reader.push(loas(undefined, frame(1, 9))), { type: 'unconfigured' })
  t.equal(reader.push(loas({}, frame(1, 9))).type, 'adts')
  const reading = reader.push(loas(undefined, frame(2, 9)))
  t.match(reading, { type: 'adts' })
  const mono = config('00010 0100 0001 000')
  t.match(reader.push(loas({ audio: mono }, frame(3, 9))), {
    audio: { parameters: { sampleRate: 44_100, channels: 1 } },
  })
})

t.test('elements with several frames, and with none, are converted', async (t) => {
  const frames = [frame(1, 10), frame(2, 300), frame(3, 4)]
  const reading = new LatmReader().push(loas({ subFrames: 3 }, ...frames))
  t.strictSame(reading.type === 'adts' && payloadsOf(reading.bytes), frames)
  t.match(new LatmReader().push(loas({}, frame(0, 0))), { type: 'adts', bytes: Buffer.alloc(0) })
})

t.test(
  'explicit SBR: ADTS has the core, the parameters have the extended sample rate',
  async (t) => {
    const cases = [
      [config('00101 0110 0010 0011 00010 000'), 'mp4a.40.5', 48_000, 2, 24_000, 2],
      [config('11101 0111 0001 0100 00010 000'), 'mp4a.40.29', 44_100, 2, 22_050, 1],
      // An explicit sample rate that also has an index.
      [
        `000101111${(32_000).toString(2).padStart(24, '0')}0110000`,
        'mp4a.40.2',
        32_000,
        6,
        32_000,
        6,
      ],
    ] as const
    for (const [audio, codecString, sampleRate, channels, coreRate, coreChannels] of cases) {
      const reading = new LatmReader().push(loas({ audio }, frame(1, 20)))
      if (reading.type !== 'adts') throw new Error(reading.type)
      t.strictSame(reading.audio.parameters, { codecString, sampleRate, channels })
      const core = { codecString: 'mp4a.40.2', sampleRate: coreRate, channels: coreChannels }
      t.strictSame(decodeAdtsHeader(reading.bytes, 0)?.parameters, core)
      const encoded = encodeAudioSpecificConfig(reading.audio)
      t.strictSame(readAudioSpecificConfig(new BitReader(encoded)), reading.audio)
    }
  },
)

t.test(
  'configurations that ADTS cannot express are unsupported, broken bytes are damaged',
  async (t) => {
    const unsupported: MuxFields[] = [
      { programs: 2 },
      { layers: 2 },
      { frameLengthType: 1 },
      { audio: config('00010 0011 0010 100') }, // 960 samples
      { audio: config('00010 0011 0000 000') }, // channels in a program_config_element
      { audio: config('00010 1101 0010 000') }, // a rate that is reserved
      { audio: config('00001 0011 0010 000') }, // AAC main
      { audio: config('10111 0011 0010 000') }, // AAC-LD
    ]
    for (const fields of unsupported) {
      const { type } = new LatmReader().push(loas(fields, frame(1, 30)))
      t.equal(type, 'unsupported', JSON.stringify(fields))
    }
    const whole = loas({}, frame(1, 30))
    t.equal(new LatmReader().push(whole.subarray(0, -1)).type, 'damaged')
    t.equal(new LatmReader().push(Buffer.concat([whole, Buffer.alloc(2)])).type, 'damaged')
    t.equal(new LatmReader().push(Buffer.concat([Buffer.alloc(1), whole])).type, 'damaged')
    const lying = Buffer.from(whole)
    lying[lying.length - 31] = 0xff
    t.not(new LatmReader().push(lying).type, 'unsupported')
    t.match(new LatmReader().push(loas({}, frame(1, 8100))), { type: 'adts' })
  },
)

t.test('LatmReader reads 1024 frames of a PES packet, and some of the last element', async (t) => {
  const reader = new LatmReader()
  const element = loas({ subFrames: 64 }, ...Array.from({ length: 64 }, () => frame(1, 1)))
  const push = (count: number) =>
    reader.push(Buffer.concat(Array.from({ length: count }, () => element)))
  t.equal(push(16).type, 'adts')
  t.equal(push(500).type, 'damaged')
  t.ok(reader.frames <= 16 * 64 + 1024 + 64, `${reader.frames} frames`)
  t.equal(push(1).type, 'adts')
})

t.test(
  'LatmReader accepts any bytes without throwing, and its output is bounded by the input',
  async () => {
    const header = (length: number) => new BitWriter().u(11, 0x2b7).u(13, length).bytes
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { maxLength: 5 }),
        (bodies) => {
          const reader = new LatmReader()
          reader.push(loas({}, frame(1, 3)))
          const bytes = Buffer.concat(bodies.flatMap((body) => [header(body.length), body]))
          const reading = reader.push(bytes)
          // An element of n bits has at most n / 8 frames, each with a header of 7 bytes.
          return reading.type !== 'adts' || reading.bytes.length <= bytes.length * 8
        },
      ),
      { numRuns: 3000 },
    )
  },
)

t.test('BitReader reads bytes at any bit offset', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), fc.nat(30), fc.nat(25), (bytes, skip, count) => {
      const reader = new BitReader(bytes)
      reader.skipBits(skip)
      const slow = new BitReader(bytes)
      slow.skipBits(skip)
      const read = reader.readBytes(count)
      const expected = Array.from({ length: count }, () => slow.readBits(8))
      return reader.overrun ? read.length === 0 && slow.overrun : read.equals(Buffer.from(expected))
    }),
    { numRuns: 500 },
  )
})
