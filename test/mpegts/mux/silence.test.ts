import t from 'tap'
import { decodeAdtsHeader } from '../../../src/codec/adts.ts'
import { elementaryBytes, findPesHeader } from '../../../src/mpegts/pes.ts'
import { Silence } from '../../../src/mpegts/mux/silence.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import type { Track } from '../../../src/mpegts/track.ts'

const sound = (parameters: Track['parameters']): Track => ({
  pid: 257,
  streamType: 0x0f,
  kind: 'audio',
  codec: 'aac',
  descriptors: Buffer.alloc(0),
  language: 'fra',
  ...(parameters && { parameters }),
})

const payloadOf = ({ chunks }: PesUnit) => {
  const header = findPesHeader(chunks)!
  return { header, payload: Buffer.concat([...elementaryBytes(chunks, header.sizeBytes)]) }
}

t.test('silence keeps rate, channels and language of the sound it stands for', async (t) => {
  for (const [codecString, sampleRate, channels] of [
    ['mp4a.40.2', 44_100, 1],
    ['mp4a.40.2', 48_000, 2],
  ] as const) {
    const silence = new Silence(300, sound({ codecString, sampleRate, channels }))
    t.match(silence.track, { pid: 300, language: 'fra', parameters: { sampleRate, channels } })
    const [unit] = silence.takeUntil(0)
    const { header, payload } = payloadOf(unit!)
    t.equal(header.ptsTicks, 0)
    const frame = decodeAdtsHeader(payload, 0)!
    t.match(frame.parameters, { sampleRate, channels })
    t.equal(payload.length, frame.sizeBytes * 8, 'eight frames')
  }
})

t.test('what AAC does not have becomes 48 kHz and stereo', async (t) => {
  const { track } = new Silence(
    257,
    sound({ codecString: 'ac-3', sampleRate: 12_345, channels: 6 }),
  )
  t.match(track.parameters, { sampleRate: 48_000, channels: 2 })
})

t.test(
  'silence lasts as long as it is asked for, without a gap, and begins anew at a jump',
  async (t) => {
    const silence = new Silence(257, sound(undefined))
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
