/** What a check requests, and when. */
import t from 'tap'
import type { Exchange } from '../../../src/check/exchange.ts'
import { createCheckClock, type CheckClock } from '../../../src/check/follow/check-clock.ts'
import { followStream } from '../../../src/check/follow/follow.ts'
import { startOrigin } from './origin.ts'

t.test('loads a bounded sample of an ended stream, then sends each probe once', async (t) => {
  const segments = Array.from({ length: 100 }, (_, index) => `#EXTINF:2.000,\n${index}.ts\n`)
  const text = `#EXTM3U\n#EXT-X-TARGETDURATION:2\n${segments.join('')}#EXT-X-ENDLIST\n`
  const origin = await startOrigin(t, (_, response) => response.end(text))
  const roles: Exchange['role'][] = []
  await followStream({
    url: `${origin.url}/vod.m3u8`,
    seconds: 60,
    clock: createCheckClock(),
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
    await followStream({
      url: `${origin.url}/live.m3u8`,
      seconds: 60,
      clock: skippingClock(),
      signal: end.signal,
      onExchange: ({ role, sentAtMs }) => {
        if (role === 'playlist' && reloads.push(sentAtMs) === 4) end.abort()
      },
    })
    t.equal(reloads.length, 4)
    const pausesMs = reloads.slice(1).map((sentAtMs, index) => sentAtMs - reloads[index]!)
    t.strictSame(pausesMs, [4000, 2000, 2000])
  },
)

t.test('ends within the body that is over `maxBytes`', async (t) => {
  const playlist = '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4.000,\n0.ts\n'
  const origin = await startOrigin(t, ({ url }, response) => {
    if (url === '/live.m3u8') response.end(playlist)
    // The rest never comes.
    else response.write('x'.repeat(2000))
  })
  const roles: Exchange['role'][] = []
  const follow = (maxBytes: number, url: string) =>
    followStream({
      url: origin.url + url,
      seconds: 60,
      clock: createCheckClock(),
      maxBytes,
      onExchange: ({ role }) => roles.push(role),
    })
  t.equal(await follow(2000, '/live.m3u8'), true)
  t.notOk(roles.includes('segment'))
})

/** A clock that only sleeps advance, so that the time of an answer is 0; its timers never end. */
function skippingClock(): CheckClock {
  let nowMs = 0
  return {
    nowMs: () => nowMs,
    sleep: async (ms) => void (nowMs += ms),
    startTimer: () => ({ restart: () => undefined, stop: () => undefined }),
  }
}
