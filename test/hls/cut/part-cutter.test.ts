import t from 'tap'
import { PartCutter } from '../../../src/hls/cut/part-cutter.ts'

const TARGET_TICKS = 19_200
const AUDIO_TICKS = (1024 * 90_000) / 44_100

t.test('no part has more audio frames than fit in PART-TARGET, wherever it begins', async (t) => {
  const maxFrames = Math.floor(TARGET_TICKS / AUDIO_TICKS)
  const parts = new PartCutter()
  parts.fix(TARGET_TICKS / 90_000, 900_000)
  parts.fitAudio([AUDIO_TICKS])
  for (let first = 0; first < 1000; first++) {
    const startTicks = Math.round(first * AUDIO_TICKS)
    parts.start(startTicks)
    parts.advance(startTicks, 90_000, true)
    // The frame lasts longer than the part.
    const [end] = parts.advance(startTicks + 90_000, 90_000, false)
    const next = Math.round((first + maxFrames) * AUDIO_TICKS)
    t.ok(end!.endTicks <= next, `${end!.endTicks} is after ${next}`)
  }
})
