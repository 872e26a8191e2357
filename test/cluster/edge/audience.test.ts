/**
 * What an edge collects about its viewers.
 */
import t from 'tap'
import { Audience } from '../../../src/cluster/edge/audience.ts'

t.test('reports sent bytes each time, and each viewer once in every fifth report', async (t) => {
  const audience = new Audience()
  audience.addSent('a', 'playlist.m3u8', 400)
  audience.addSent('a', 'playlist.m3u8', 300)
  audience.addSent('b', 'x-1.ts', 1000)
  for (const ip of ['192.0.2.1', '192.0.2.1', '192.0.2.2']) audience.addViewer('a', [ip, 'vlc'])
  const { a, b } = audience.take()
  t.strictSame(
    [a, b],
    [
      { sentBytes: { 'playlist.m3u8': 700 }, viewers: [] },
      { sentBytes: { 'x-1.ts': 1000 }, viewers: [] },
    ],
  )
  for (let report = 2; report < 5; report++) audience.take()
  audience.addViewer('a', ['192.0.2.1', 'vlc'])
  t.equal(audience.take()['a']!.viewers.length, 2)
  t.strictSame(audience.take(), {})
})

t.test('names a viewer alike at every edge, and bounds their number', async (t) => {
  const viewersOf = (audience: Audience) => {
    for (let report = 1; report < 5; report++) audience.take()
    return audience.take()['a']!.viewers
  }
  const [one, other] = [new Audience(), new Audience()]
  one.addViewer('a', ['192.0.2.1', 'vlc'])
  other.addViewer('a', ['192.0.2.1', 'vlc'])
  t.strictSame(viewersOf(one), viewersOf(other))
  for (let n = 0; n < 10_000; n++) one.addViewer('a', [`${n}`])
  t.equal(viewersOf(one).length, 4096)
})
