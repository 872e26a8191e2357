import * as fc from 'fast-check'
import t from 'tap'
import { inspectFragments } from '../../src/check/media/fragments.ts'
import { AudioSamples, type AudioSource } from '../../src/mp4/audio-samples.ts'
import { encodeInitSegment } from '../../src/mp4/init-segment.ts'
import { VideoSamples } from '../../src/mp4/video-samples.ts'
import { payloadOf, readFixture } from '../mpegts/demux.ts'
import { fragment, unitsOfKind, type Samples } from './fragmented-track.ts'

const OPUS = {
  codec: 'opus',
  format: {
    codec: 'opus',
    parameters: { codecString: 'opus', sampleRate: 48_000, channels: 2 },
    timescale: 48_000,
    preSkip: 0,
    inputSampleRate: 0,
  },
} as const

const AUDIO: readonly (readonly [string, AudioSource])[] = [
  ['h264-aac', { codec: 'aac' }],
  ['mp3', { codec: 'mp3' }],
  ['ac3-dvb', { codec: 'ac3' }],
  ['eac3', { codec: 'eac3' }],
  ['eac3', OPUS],
]
const VIDEO = [
  ['h264-aac', 'h264'],
  ['h265-aac', 'h265'],
  ['h265-aac', 'h264'],
] as const

const payloads = new Map(
  [...AUDIO, ...VIDEO].map(([name, source]) => {
    const kind = typeof source === 'string' ? 'video' : 'audio'
    return [`${name} ${kind}`, unitsOfKind(readFixture(name), kind).map(payloadOf)]
  }),
)

/** Bytes set in a payload, and times. */
const damage = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    byte: fc.constantFrom(0, 1, 3, 0x0b, 0x77, 0x67, 0xff, 0xf1),
  }),
  { maxLength: 20 },
)
const time = fc.oneof(
  fc.nat(2 ** 20),
  fc.integer({ min: -(2 ** 33), max: 2 ** 34 }),
  fc.constantFrom(Number.NaN, Infinity, Number.MAX_SAFE_INTEGER, 0.5),
)
const input = fc.array(fc.record({ damage, ptsTicks: time, dtsTicks: time, flag: fc.boolean() }), {
  minLength: 1,
  maxLength: 10,
})

function breakBytes(bytes: Buffer, changes: readonly { at: number; byte: number }[]): Buffer {
  const broken = Buffer.from(bytes)
  for (const { at, byte } of changes) broken[Math.floor(at * (broken.length - 1))] = byte
  return broken
}

/** Whether the samples make a file without a fault. */
function areWritable(samples: Samples): boolean {
  const format = samples[0]?.format
  const ofOne = samples.filter((sample) => sample.format === format)
  if (format === undefined || ofOne.length < 2) return true
  const init = encodeInitSegment({ id: 1, format, language: 'x\u0000' })
  const { file } = fragment(ofOne, { perFragment: 3 })
  // Units that claim to go on with a frame may be frames of their own.
  const faults = inspectFragments(file, undefined).faults.filter(
    ({ kind }) => kind !== 'sample-frames',
  )
  return init.length > 0 && faults.length === 0
}

t.test('damaged audio never throws, and makes files without a fault', async () => {
  fc.assert(
    fc.property(fc.constantFrom(...AUDIO), input, ([name, source], inputs) => {
      const samples = new AudioSamples(source)
      const units = payloads.get(`${name} audio`)!
      const found = inputs.flatMap(({ damage, ptsTicks, flag }, index) => {
        const bytes = breakBytes(units[index % units.length]!, damage)
        return samples.push({ bytes, ptsTicks, damaged: flag && index % 4 === 0 })
      })
      return areWritable(found)
    }),
    { numRuns: 300 },
  )
})

t.test('damaged video never throws, and makes files without a fault', async () => {
  fc.assert(
    fc.property(fc.constantFrom(...VIDEO), input, ([name, codec], inputs) => {
      const samples = new VideoSamples(codec)
      const units = payloads.get(`${name} video`)!
      const found = inputs.flatMap(({ damage, ptsTicks, dtsTicks, flag }, index) => {
        const bytes = breakBytes(units[index % units.length]!, index === 0 ? [] : damage)
        const sample = samples.push({
          chunks: [bytes],
          ptsTicks: index === 0 ? 0 : ptsTicks,
          dtsTicks: index === 0 ? 0 : dtsTicks,
          startsFrame: flag || index === 0,
          damaged: false,
        })
        return sample === undefined ? [] : [sample]
      })
      return areWritable(found)
    }),
    { numRuns: 300 },
  )
})

t.test('noise never throws', async () => {
  const bytes = fc.uint8Array({ maxLength: 600 }).map((raw) => Buffer.from(raw))
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 5 }), (chunks) => {
      for (const [, source] of AUDIO) {
        const samples = new AudioSamples(source)
        for (const each of chunks) samples.push({ bytes: each, ptsTicks: 0, damaged: false })
      }
      for (const codec of ['h264', 'h265'] as const) {
        const unit = { ptsTicks: 0, dtsTicks: 0, startsFrame: true, damaged: false }
        new VideoSamples(codec).push({ chunks, ...unit })
      }
      return true
    }),
  )
})

t.test('an incomplete frame is held up to 16 KiB, then skipped', async (t) => {
  // Six syncframes with dependent substreams that never come to six blocks.
  const dependent = Buffer.alloc(4096)
  Buffer.from([0x0b, 0x77, 0x47, 0xff, 0x04, 0x87]).copy(dependent)
  const first = Buffer.from(dependent)
  first[2] = 0x07
  const samples = new AudioSamples({ codec: 'eac3' })
  samples.push({ bytes: first, ptsTicks: 0, damaged: false })
  for (let count = 0; count < 4; count++) {
    samples.push({ bytes: dependent, ptsTicks: 0, damaged: false })
  }
  t.equal(samples.stats.skippedBytes >= 4096 * 5, true)
})
