/** What a check requests, and when. */
import t from 'tap'
import type { Exchange } from '../../../src/check/exchange.ts'
import { follow } from '../../../src/check/follow/follow.ts'
import { nowMs, startOrigin } from './origin.ts'

t.test('loads a bounded sample of an ended stream, then sends each probe once', async (t) => {
  const segments = Array.from({ length: 100 }, (_, index) => `#EXTINF:2.000,\n${index}.ts\n`)
  const text = `#EXTM3U\n#EXT-X-TARGETDURATION:2\n${segments.join('')}#EXT-X-ENDLIST\n`
  const origin = await startOrigin(t, (_, response) => response.end(text))
  const roles: Exchange['role'][] = []
  await follow({
    url: `${origin.url}/vod.m3u8`,
    seconds: 60,
    nowMs,
    onExchange: ({ role }) => roles.push(role),
  })
  t.equal(roles.filter((role) => role === 'playlist').length, 1)
  t.equal(roles.filter((role) => role === 'segment').length, 12)
  t.ok(roles.includes('head') && roles.includes('gzip'))
  t.ok(roles.length < 22)
})

t.test(
  'reloads after half a target duration without new media, and ends by its signal',
  async (t) => {
    const text = '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4.000,\n0.ts\n'
    const origin = await startOrigin(t, (_, response) => response.end(text))
    const end = new AbortController()
    const reloads: number[] = []
    await follow({
      url: `${origin.url}/live.m3u8`,
      seconds: 60,
      nowMs,
      signal: end.signal,
      onExchange: ({ role, sentAtMs }) => {
        if (role === 'playlist' && reloads.push(sentAtMs) === 4) end.abort()
      },
    })
    t.equal(reloads.length, 4)
    const pausesMs = reloads.slice(1).map((sentAtMs, index) => sentAtMs - reloads[index]!)
    const shortestMs = Math.min(...pausesMs)
    t.ok(shortestMs > 1900 && shortestMs < 4000, `pauses of ${pausesMs.join(', ')} ms`)
  },
)
