import t from 'tap'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import { TrackBitrates } from '../../src/stream/track-bitrates.ts'

function unit(pid: number, sizeBytes: number): DemuxerOutput {
  return { type: 'unit', unit: { track: { pid }, sizeBytes } } as DemuxerOutput
}

t.test('measures each track over 4 s, and forgets one that has gone', async (t) => {
  const bitrates = new TrackBitrates()
  bitrates.observe(1_000_000)
  bitrates.handle(unit(256, 300_000))
  bitrates.handle(unit(256, 200_000))
  bitrates.handle(unit(257, 50_000))
  bitrates.observe(4_750_000)
  t.equal(bitrates.bps.size, 0)
  bitrates.observe(5_000_000)
  t.same(
    [...bitrates.bps],
    [
      [256, 1_000_000],
      [257, 100_000],
    ],
  )
  bitrates.handle(unit(256, 1_000_000))
  bitrates.observe(10_000_000)
  t.same([...bitrates.bps], [[256, 1_600_000]])
})
