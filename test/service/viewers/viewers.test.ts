import t from 'tap'
import { Viewers, type ViewerFigures } from '../../../src/service/viewers/viewers.ts'
import type { LiveStream } from '../../../src/stream/live-stream.ts'

type Stream = { id: string; status: LiveStream['status']; forgotten: boolean }

function setUp() {
  const announced: [id: string, viewers: number, peak: number][] = []
  const viewers = new Viewers({
    createSalt: () => 1,
    onChange: ({ id }, { viewers, peakViewers }: ViewerFigures) =>
      announced.push([id, viewers, peakViewers]),
  })
  const start = (id: string) => {
    const stream: Stream = { id, status: 'STREAMING', forgotten: false }
    return stream as Stream & LiveStream
  }
  const take = () => announced.splice(0)
  return { viewers, start, take }
}

t.test('announces a changed number at most every 30 s', async (t) => {
  const { viewers, start, take } = setUp()
  const stream = start('studio')
  viewers.tick(0)
  t.strictSame(take(), [], 'nobody is no news')
  viewers.push(stream, ['a'], 1e6)
  viewers.tick(1e6)
  t.strictSame(take(), [['studio', 1, 1]], 'the first viewer, at once')
  for (const viewer of ['a', 'b', 'c']) viewers.push(stream, [viewer], 2e6)
  for (let sec = 2; sec < 31; sec++) viewers.tick(sec * 1e6)
  t.strictSame(take(), [])
  viewers.tick(31e6)
  t.strictSame(take(), [['studio', 3, 3]])
  viewers.push(stream, ['a'], 32e6)
  for (let sec = 32; sec < 61; sec++) viewers.tick(sec * 1e6)
  t.strictSame(take(), [])
  viewers.tick(61e6)
  t.strictSame(take(), [['studio', 1, 3]], 'with the peak')
  viewers.push(stream, ['a'], 62e6)
  for (let sec = 62; sec < 93; sec++) viewers.tick(sec * 1e6)
  t.strictSame(take(), [], 'the same number is not repeated')
  viewers.tick(93e6)
  t.strictSame(take(), [['studio', 0, 3]], 'the last viewer has left')
})

t.test('counts viewers of each stream for itself', async (t) => {
  const { viewers, start } = setUp()
  const [flooded, other, silent] = [start('flooded'), start('other'), start('silent')]
  viewers.push(other, ['a'], 0)
  viewers.push(other, ['192.0.2.1', 'VLC'], 0)
  for (let i = 0; i < 50_000; i++) viewers.push(flooded, [`forged-${i}`], 0)
  t.ok(viewers.count(flooded, 0) > 40_000)
  t.equal(viewers.count(other, 0), 2)
  t.equal(viewers.count(silent, 0), 0)
})

t.test('announces nothing after the end of a stream, and forgets with it', async (t) => {
  const { viewers, start, take } = setUp()
  const stream = start('studio')
  viewers.push(stream, ['a'], 0)
  stream.status = 'STOPPED'
  viewers.tick(0)
  t.strictSame(take(), [])
  t.equal(viewers.count(stream, 0), 1, 'viewers of what is still served')
  stream.forgotten = true
  viewers.tick(1e6)
  t.equal(viewers.count(stream, 1e6), 0)
})
