import t from 'tap'
import { clipOf } from '../../bench/support/clip.ts'
import { Demuxer } from '../../src/mpegts/index.ts'

t.test('a clip of the benches has the requested rate and breaks no rule', async (t) => {
  for (const megabits of [2, 5, 40]) {
    const clip = clipOf(megabits * 1e6)
    const rate = (clip.length * 8) / 8 / 1e6
    t.ok(Math.abs(rate / megabits - 1) < 0.05, `${rate} Mbit/s`)
    const demuxer = new Demuxer()
    demuxer.push(clip)
    demuxer.end()
    t.match(demuxer.stats, { continuityErrors: 0, skippedBytes: 0, damagedUnits: 0 })
  }
})
