import * as fc from 'fast-check'
import t from 'tap'
import { ProgramDate } from '../../../src/hls/cut/program-date.ts'

const WALL_MS = Date.UTC(2026, 0, 1)

interface Feed {
  readonly segmentSec: number
  readonly segments: number
  /** Wall clock at which the media of a time arrives, since the start. */
  readonly arrivalSec: (mediaSec: number) => number
}

/** @returns how far each date is from the media's own time since the anchor, in milliseconds */
function feed({ segmentSec, segments, arrivalSec }: Feed, date = new ProgramDate()): number[] {
  const wallMs = (mediaSec: number) => WALL_MS + arrivalSec(mediaSec) * 1000
  date.anchor(wallMs(0))
  const anchorMs = date.startMs
  return Array.from({ length: segments }, (_, index) => {
    date.arrive(segmentSec, wallMs((index + 1) * segmentSec))
    date.advance(segmentSec)
    return date.startMs - anchorMs - (index + 1) * segmentSec * 1000
  })
}

const DAY = { segmentSec: 2, segments: 43_200 }

t.test(
  'a source that is 50 ppm off keeps dates within 12 ms of the wall clock for a day (RFC 8216bis 4.4.4.6)',
  async (t) => {
    for (const ppm of [50, -50]) {
      const slews = feed({ ...DAY, arrivalSec: (sec) => sec * (1 + ppm / 1e6) })
      const errors = slews.map((ms, index) => ms - (index + 1) * 2 * (ppm / 1000))
      t.ok(Math.max(...errors.map(Math.abs)) < 12, `${errors.at(-1)!.toFixed(2)} ms at the end`)
      t.ok(Math.abs(slews.at(-1)!) > 4300, 'the day was made good')
    }
  },
)

t.test(
  'a source that is 1000 ppm off, far more than any crystal, keeps dates within 50 ms',
  async (t) => {
    const slews = feed({ ...DAY, arrivalSec: (sec) => sec * 1.001 })
    const errors = slews.map((ms, index) => ms - (index + 1) * 2)
    t.ok(Math.max(...errors.map(Math.abs)) < 50)
  },
)

t.test('dates are the sums of EXTINF but for a step of 10 ms each 200 s at 50 ppm', async (t) => {
  const slews = feed({ ...DAY, arrivalSec: (sec) => sec * (1 + 50 / 1e6) })
  const steps = slews.map((ms, index) => ms - (slews[index - 1] ?? 0)).filter((ms) => ms > 0.001)
  t.ok(steps.length > 400 && steps.length < 440, `${steps.length} steps in a day`)
  t.ok(steps.every((ms) => Math.abs(ms - 10) < 0.001))
})

t.test('jitter of the network hardly moves dates', async (t) => {
  const jitterMs = [0, 180, 40, 90, 5, 200, 130, 60, 20, 150, 75]
  const slews = feed({
    ...DAY,
    arrivalSec: (sec) => sec + jitterMs[(sec / 2) % jitterMs.length]! / 1000,
  })
  t.ok(Math.max(...slews.map(Math.abs)) < 10, `${Math.max(...slews).toFixed(2)} ms at most`)
})

t.test(
  'a jump of the wall clock and a burst of media, which are no drift, leave dates where they were',
  async (t) => {
    const jump = feed({ ...DAY, arrivalSec: (sec) => sec + (sec > 100 ? 10_800 : 0) })
    t.ok(jump.every((ms) => ms === 0))
    const burst = feed({ segmentSec: 2, segments: 100, arrivalSec: () => 0 })
    t.ok(burst.every((ms) => ms === 0))
  },
)

t.test('an outage that is caught up leaves dates where they were', async (t) => {
  const late = (sec: number) => sec + Math.max(0, sec > 20 ? 1 - (sec - 20) / 10 : 0)
  const slews = feed({ ...DAY, segments: 60, arrivalSec: late })
  t.ok(slews.every((ms) => ms === 0))
})

t.test('a date departs from the duration before it by at most 10 ms', async () => {
  const event = fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({
        durationSec: fc.double({ min: 0.01, max: 60, noNaN: true }),
        arrivals: fc.array(fc.integer({ min: -2000, max: 2000 }), { maxLength: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ anchorMs: fc.integer({ min: 0, max: 4e12 }) }) },
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 100 }), (events) => {
      const date = new ProgramDate()
      for (const each of events) {
        const before = date.startMs
        if ('anchorMs' in each) {
          date.anchor(each.anchorMs)
          if (date.startMs < before) throw new Error('went back')
          if (date.startMs < each.anchorMs) throw new Error('is behind the wall clock')
          continue
        }
        for (const ms of each.arrivals) date.arrive(each.durationSec / 2, before + ms)
        date.advance(each.durationSec)
        const slewMs = date.startMs - before - each.durationSec * 1000
        // Milliseconds since 1970 have a precision of 0.25 µs.
        if (Math.abs(slewMs) > 10 + 0.001) throw new Error(`slews ${slewMs} ms`)
      }
    }),
  )
})
