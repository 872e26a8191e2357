/**
 * Streams at an edge: what clients who guess names may cost.
 */
import t from 'tap'
import { Audience } from '../../src/edge/audience.ts'
import { EdgeStreams } from '../../src/edge/edge-streams.ts'
import { MediaCache } from '../../src/edge/media-cache.ts'
import type { StreamOrigin } from '../../src/edge/stream-origin.ts'
import { TokenBucket } from '../../src/token-bucket.ts'

t.test('names that may not be asked for take no room from streams', async (t) => {
  let nowUs = 0
  let asked = 0
  const origin = { get: () => (asked++, new Promise(() => undefined)) } as unknown as StreamOrigin
  const unlisted = new TokenBucket(1, nowUs)
  unlisted.take(nowUs)
  const streams = new EdgeStreams({
    originOf: () => origin,
    media: new MediaCache(1000),
    name: 'open',
    unlisted,
    audience: new Audience(),
    clock: { nowUs: () => nowUs, wallMs: () => 0 },
    pathOf: (id) => `/video/${id}/`,
  })
  t.teardown(() => streams.close())
  const wait = (id: string) => streams.findStream(id).files.wait('a.ts', {}, () => undefined)
  for (let n = 0; n < 20_000; n++) if (wait(`x${n}`) !== undefined) t.fail('was asked for')
  nowUs = 1e6
  t.type(wait('demo'), 'function')
  t.ok(streams.inUse('demo'))
  t.equal(asked, 1)
})
