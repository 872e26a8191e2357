import * as fc from 'fast-check'
import t from 'tap'
import { decodeAc3Header } from '../../src/codec/ac3.ts'
import { decodeAdtsHeader } from '../../src/codec/adts.ts'
import { findAudioFrame } from '../../src/codec/audio-frame.ts'
import { decodeMpegAudioHeader } from '../../src/codec/mpeg-audio.ts'

// First bytes of a stream as ffmpeg, LAME and TwoLAME write them; frame size, samples, rate and channels as ffprobe reads them.
// prettier-ignore
const HEADERS = [
  [decodeAdtsHeader, 'fff14c801d7ffcde', 'aac', 'mp4a.40.2', 235, 1024, 48_000, 2],
  [decodeAdtsHeader, 'fff1518027dffcde', 'aac', 'mp4a.40.2', 318, 1024, 44_100, 6],
  [decodeAdtsHeader, 'fff16c402d9ffcde', 'aac', 'mp4a.40.2', 364, 1024, 8000, 1],
  [decodeAdtsHeader, 'fff14dc023fffcde', 'aac', 'mp4a.40.2', 287, 1024, 48_000, 8],
  // Seven channels are declared by a program_config_element in the payload.
  [decodeAdtsHeader, 'fff14c00245ffca0', 'aac', 'mp4a.40.2', 290, 1024, 48_000, undefined],
  [decodeMpegAudioHeader, 'fffda404', 'mp2', 'mp4a.40.33', 576, 1152, 48_000, 2],
  [decodeMpegAudioHeader, 'fff580c4', 'mp2', 'mp4a.40.33', 417, 1152, 22_050, 1],
  [decodeMpegAudioHeader, 'fffb9064', 'mp3', 'mp4a.40.34', 417, 1152, 44_100, 2],
  [decodeMpegAudioHeader, 'fffb9264', 'mp3', 'mp4a.40.34', 418, 1152, 44_100, 2],
  [decodeMpegAudioHeader, 'fff348c4', 'mp3', 'mp4a.40.34', 144, 576, 16_000, 1],
  [decodeMpegAudioHeader, 'ffe338c4', 'mp3', 'mp4a.40.34', 216, 576, 8000, 1],
  // Layer I, 384 kbit/s: 12 x 8 slots of four bytes (ISO/IEC 11172-3 2.4.3.1).
  [decodeMpegAudioHeader, 'ffffc404', 'mp2', 'mp4a.40.32', 384, 384, 48_000, 2],
  [decodeAc3Header, '0b771e8b1c40ebf8', 'ac3', 'ac-3', 1536, 1536, 48_000, 6],
  [decodeAc3Header, '0b77c2ea544043e1', 'ac3', 'ac-3', 834, 1536, 44_100, 2],
  [decodeAc3Header, '0b77c2ea554043e1', 'ac3', 'ac-3', 836, 1536, 44_100, 2],
  [decodeAc3Header, '0b77999b88402f84', 'ac3', 'ac-3', 384, 1536, 32_000, 1],
  [decodeAc3Header, '0b77009118408be1', 'ac3', 'ac-3', 1024, 1536, 48_000, 3],
  [decodeAc3Header, '0b7701ff3f87c000', 'eac3', 'ec-3', 1024, 1536, 48_000, 6],
  [decodeAc3Header, '0b77008a7287c000', 'eac3', 'ec-3', 278, 1536, 44_100, 1],
  [decodeAc3Header, '0b77011fb487c000', 'eac3', 'ec-3', 576, 1536, 32_000, 2],
] as const

for (const [decode, hex, codec, codecString, sizeBytes, samples, sampleRate, channels] of HEADERS) {
  t.test(`${codec} ${sampleRate} Hz, ${channels ?? 'undeclared'} channels: ${hex}`, async (t) => {
    const bytes = Buffer.from(hex, 'hex')
    const parameters = { codecString, sampleRate, ...(channels === undefined ? {} : { channels }) }
    t.strictSame(decode(bytes, 0), { codec, sizeBytes, samples, parameters })
    t.strictSame(decode(Buffer.concat([Buffer.alloc(3), bytes]), 3)?.sizeBytes, sizeBytes)
    for (let length = 0; length < 4; length++) {
      t.equal(decode(bytes.subarray(0, length), 0), undefined)
    }
  })
}

t.test('frames have as many samples as their blocks', async (t) => {
  const samplesOf = (decode: typeof decodeAdtsHeader, hex: string) =>
    decode(Buffer.from(hex, 'hex'), 0)?.samples
  t.equal(samplesOf(decodeAdtsHeader, 'fff14c801d7ffd'), 2048, 'two raw data blocks')
  t.equal(samplesOf(decodeAc3Header, '0b7701ff1f87c000'), 512, 'two blocks')
  t.equal(samplesOf(decodeAc3Header, '0b7741ff3f87c000'), 0, 'a dependent substream')
  t.equal(samplesOf(decodeAc3Header, '0b7709ff3f87c000'), 0, 'a second independent substream')
})

t.test('frame headers with reserved values are rejected', async (t) => {
  const none = [
    [decodeAdtsHeader, 'fff174801d7ffc', 'sampling frequency index 13'],
    [decodeAdtsHeader, 'fff74c801d7ffc', 'a layer'],
    [decodeAdtsHeader, 'fff14c80001ffc', 'a frame shorter than its header'],
    [decodeMpegAudioHeader, 'ffeb9064', 'version 1'],
    [decodeMpegAudioHeader, 'fff99064', 'layer 0'],
    [decodeMpegAudioHeader, 'fffb9c64', 'sampling frequency 3'],
    [decodeMpegAudioHeader, 'fffb0064', 'free format'],
    [decodeMpegAudioHeader, 'fffbf064', 'bit rate 15'],
    [decodeAc3Header, '0b771e8bdc40ebf8', 'fscod 3'],
    [decodeAc3Header, '0b771e8b2640ebf8', 'frmsizecod 38'],
    [decodeAc3Header, '0b771e8b1c48ebf8', 'bsid 9'],
    [decodeAc3Header, '0b7701ffff87c000', 'fscod2 3'],
  ] as const
  for (const [decode, hex, why] of none) t.equal(decode(Buffer.from(hex, 'hex'), 0), undefined, why)
})

/** @returns an ADTS frame */
function frame(sizeBytes: number, sampleRateIndex = 3): Buffer {
  const bytes = Buffer.alloc(sizeBytes, 0x55)
  bytes.set([0xff, 0xf1, 0x40 | (sampleRateIndex << 2), 0x80 | (sizeBytes >> 11)])
  bytes[4] = (sizeBytes >> 3) & 0xff
  bytes[5] = ((sizeBytes & 7) << 5) | 0x1f
  return bytes
}

t.test('findAudioFrame accepts a header when another frame follows', async (t) => {
  const find = (...parts: Uint8Array[]) =>
    findAudioFrame(Buffer.concat(parts), decodeAdtsHeader)?.header.parameters.sampleRate

  t.equal(find(frame(100), frame(90)), 48_000)
  t.equal(find(frame(100)), 48_000, 'one frame and no more')
  t.equal(find(Buffer.alloc(33, 7), frame(100), frame(90)), 48_000, 'behind the end of another')
  t.equal(
    find(Buffer.alloc(33, 7), frame(50, 4).subarray(0, 20), frame(100), frame(90)),
    48_000,
    'what looks like a header, but has none behind it',
  )
  t.equal(
    find(Buffer.alloc(33, 7), frame(100).subarray(0, 50)),
    undefined,
    'nothing to vouch for it',
  )
  t.equal(find(frame(100, 7).subarray(0, 50)), undefined, 'not even at the start')
  t.equal(
    find(Buffer.alloc(33, 7), frame(50, 7), frame(100), frame(90)),
    48_000,
    'what looks like a header of another format, with a true one behind it',
  )
  t.equal(find(Buffer.alloc(500, 0xff)), undefined)
})

t.test('frame header decoders accept any bytes without throwing', async () => {
  const sync = fc.constantFrom([0xff, 0xf1], [0xff, 0xfb], [0x0b, 0x77], [])
  fc.assert(
    fc.property(sync, fc.uint8Array({ maxLength: 40 }), (sync, bytes) => {
      const stretch = Buffer.from([...sync, ...bytes])
      for (const decode of [decodeAdtsHeader, decodeMpegAudioHeader, decodeAc3Header]) {
        const found = findAudioFrame(stretch, decode)
        if (found !== undefined && found.header.sizeBytes <= 0) return false
      }
      return true
    }),
    { numRuns: 2000 },
  )
})
