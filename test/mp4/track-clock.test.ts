import * as fc from 'fast-check'
import t from 'tap'
import { noSampleStats } from '../../src/mp4/sample.ts'
import { AudioClock, VideoClock } from '../../src/mp4/track-clock.ts'

t.test('decode times of video are the DTS, the offset is PTS minus DTS', async (t) => {
  const clock = new VideoClock()
  t.strictSame(clock.push(9003, 3), { decodeTicks: 3, compositionOffset: 9000 })
  t.strictSame(clock.push(3003, 3003), { decodeTicks: 3003, compositionOffset: 0 })
})

t.test('a PTS before its DTS is kept', async (t) => {
  t.strictSame(new VideoClock().push(3000, 6000), {
    decodeTicks: 6000,
    compositionOffset: -3000,
  })
})

t.test('a DTS that does not follow the one before is moved behind it; the PTS stays', async (t) => {
  const clock = new VideoClock()
  clock.push(3000, 3000)
  t.strictSame(clock.push(6000, 3000), { decodeTicks: 3001, compositionOffset: 2999 })
  t.strictSame(clock.push(0, 0), { decodeTicks: 3002, compositionOffset: -3002 })
})

t.test('times that no box can hold are refused', async (t) => {
  const clock = new VideoClock()
  t.equal(clock.push(0, -1), undefined)
  t.equal(clock.push(Number.NaN, 0), undefined)
  t.equal(clock.push(2 ** 31, 0), undefined, 'the offset has 32 bits')
  clock.push(0, 0)
  t.equal(clock.push(2 ** 31, 2 ** 31), undefined, 'a duration has 32 bits')
  t.ok(clock.push(2 ** 31 - 1, 2 ** 31 - 1))
  t.equal(new AudioClock(48_000, noSampleStats()).push(-1, 1024), undefined)
})

t.test('decode times of video only grow, whatever the timestamps', async () => {
  const time = fc.oneof(fc.nat(100), fc.nat(2 ** 33), fc.constantFrom(-1, Number.NaN, 0.5))
  fc.assert(
    fc.property(fc.array(fc.tuple(time, time)), (times) => {
      const clock = new VideoClock()
      const results = times.flatMap(([pts, dts]) => {
        const sample = clock.push(pts, dts)
        return sample === undefined ? [] : [{ pts, ...sample }]
      })
      return results.every(
        ({ pts, decodeTicks, compositionOffset }, index) =>
          decodeTicks > (results[index - 1]?.decodeTicks ?? -1) &&
          decodeTicks + compositionOffset === pts,
      )
    }),
  )
})

t.test('audio counts samples through rounded and jittery timestamps', async (t) => {
  const stats = noSampleStats()
  const clock = new AudioClock(44_100, stats)
  const start = clock.push(90_001, 1024)!
  t.equal(start, 44_100)
  for (let frame = 1; frame < 1000; frame++) {
    const jitter = frame % 3 === 0 ? 1500 : frame % 3 === 1 ? -1500 : 0
    const pts = Math.floor(90_001 + (frame * 1024 * 90_000) / 44_100) + jitter
    if (clock.push(pts, 1024) !== start + frame * 1024) t.fail(`frame ${frame}`)
  }
  t.match(stats, { gaps: 0 })
})

for (const ppm of [-50, 50]) {
  t.test(`audio stays within a frame of its PTS for 24 h at ${ppm} ppm`, async (t) => {
    const stats = noSampleStats()
    const clock = new AudioClock(48_000, stats)
    const frameTicks = 1920 * (1 + ppm / 1e6)
    const frames = (24 * 3600 * 90_000) / frameTicks
    let dropped = 0
    let maxOff = 0
    for (let frame = 0; frame < frames; frame++) {
      const pts = Math.round(frame * frameTicks)
      const ticks = clock.push(pts, 1024)
      if (ticks === undefined) dropped++
      else maxOff = Math.max(maxOff, Math.abs(ticks - (pts * 48_000) / 90_000))
    }
    t.ok(maxOff > 1000 && maxOff <= 1025, `${maxOff} samples`)
    // 4.32 s in 24 h, by a frame at a time.
    t.equal(ppm > 0 ? stats.gaps : dropped, 202)
    t.equal(ppm > 0 ? dropped : stats.gaps, 0)
  })
}

t.test('a gap of more than a frame sets the count to the PTS', async (t) => {
  const stats = noSampleStats()
  const clock = new AudioClock(48_000, stats)
  clock.push(0, 1024)
  t.equal(clock.push(3840, 1024), 1024, 'a frame late is no gap')
  t.equal(clock.push(90_000, 1024), 48_000)
  t.equal(stats.gaps, 1)
  t.equal(clock.nextTicks, 49_024)
})

t.test(
  'frames that overlap by more than a frame are dropped until the PTS has caught up',
  async (t) => {
    const clock = new AudioClock(48_000, noSampleStats())
    for (let frame = 0; frame < 10; frame++) clock.push(frame * 1920, 1024)
    const after = Array.from({ length: 10 }, (_, frame) => clock.push((5 + frame) * 1920, 1024))
    t.strictSame(after.slice(0, 4), [undefined, undefined, undefined, undefined])
    t.strictSame(
      after.slice(4),
      [10, 11, 12, 13, 14, 15].map((frame) => frame * 1024),
    )
  },
)

t.test('frames of audio never overlap, whatever the timestamps', async () => {
  const frame = fc.tuple(
    fc.oneof(fc.nat(100_000), fc.nat(2 ** 33)),
    fc.constantFrom(120, 576, 1024),
  )
  fc.assert(
    fc.property(fc.array(frame), (frames) => {
      const clock = new AudioClock(48_000, noSampleStats())
      let end = 0
      return frames.every(([pts, samples]) => {
        const ticks = clock.push(pts, samples)
        if (ticks === undefined) return true
        const follows = ticks >= end
        end = ticks + samples
        return follows
      })
    }),
  )
})
