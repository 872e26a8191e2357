import t from 'tap'
import { decodeAdtsHeader } from '../../../src/codec/adts.ts'
import { decodePesHeader, pesBytes } from '../../../src/mpegts/pes.ts'
import { Silence } from '../../../src/mpegts/mux/silence.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import type { Track } from '../../../src/mpegts/track.ts'

const audioTrack = (parameters: Track['parameters']): Track => ({
  pid: 257,
  streamType: 0x0f,
  kind: 'audio',
  codec: 'aac',
  descriptors: Buffer.alloc(0),
  language: 'fra',
  ...(parameters && { parameters }),
})

const payloadOf = ({ chunks }: PesUnit) => {
  const pes = pesBytes(chunks)
  const header = decodePesHeader(pes)!
  return { header, payload: pes.subarray(header.sizeBytes) }
}

t.test('silence has sample rate, channels and language of the track it replaces', async (t) => {
  for (const [codecString, sampleRate, channels] of [
    ['mp4a.40.2', 44_100, 1],
    ['mp4a.40.2', 48_000, 2],
  ] as const) {
    const silence = new Silence(300, audioTrack({ codecString, sampleRate, channels }))
    t.match(silence.track, { pid: 300, language: 'fra', parameters: { sampleRate, channels } })
    const [unit] = silence.takeUntil(0)
    const { header, payload } = payloadOf(unit!)
    t.equal(header.ptsTicks, 0)
    const frame = decodeAdtsHeader(payload, 0)!
    t.match(frame.parameters, { sampleRate, channels })
    t.equal(payload.length, frame.sizeBytes * 8, 'eight frames')
  }
})

t.test(
  'silence has 48 kHz and stereo when AAC lacks sample rate and channels of the track',
  async (t) => {
    const { track } = new Silence(
      257,
      audioTrack({ codecString: 'ac-3', sampleRate: 12_345, channels: 6 }),
    )
    t.match(track.parameters, { sampleRate: 48_000, channels: 2 })
  },
)

t.test(
  'silence continues without a gap up to the given time, and restarts at a timestamp jump',
  async (t) => {
    const silence = new Silence(257, audioTrack(undefined))
    const first = 2 ** 33 - 20_000
    const times = []
    for (let ticks = first; ticks < first + 450_000; ticks += 3000) {
      times.push(...silence.takeUntil(ticks).map(({ ptsTicks }) => ptsTicks))
    }
    const unitTicks = 8 * 1024 * (90_000 / 48_000)
    t.strictSame(
      times,
      times.map((_, i) => first + i * unitTicks),
      'on past the wrap',
    )
    t.equal(times.length, Math.floor(447_000 / unitTicks) + 1)
    const [again] = silence.takeUntil(first + 90_000_000)
    t.equal(again!.ptsTicks, first + 90_000_000)
    t.equal(payloadOf(again!).header.ptsTicks, (first + 90_000_000) % 2 ** 33)
  },
)
