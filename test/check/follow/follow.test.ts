/** A check of our own service over HTTP, with a real encoder: nothing is broken, and a replay agrees. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Exchange } from '../../../src/check/exchange.ts'
import { follow } from '../../../src/check/follow/follow.ts'
import { checkStream } from '../../../src/check/index.ts'
import { publish } from '../../../src/publisher/publisher.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { nowMs, startOrigin } from './origin.ts'

const CLIP = fileURLToPath(new URL('../../../fixtures/demo.mpegts', import.meta.url))
const SECONDS = 12

for (const lowLatency of [true, false]) {
  t.test(`finds nothing in a stream of our own, lowLatency ${lowLatency}`, async (t) => {
    const { server, url } = await startService(t, { hls: { lowLatency } })
    const { streamKey } = await server.startStream({ streamId: 'studio' })
    const stop = new AbortController()
    const encoder = publish({
      file: CLIP,
      url: `srt://127.0.0.1:${server.srtPort}?streamid=${streamKey}`,
      loop: true,
      signal: stop.signal,
    })
    const playlistUrl = `${url}/video/studio/master.m3u8`
    await until('a playlist', async () => (await fetch(playlistUrl)).ok)
    const record = join(t.testdir(), 'record')
    const result = await checkStream({ url: playlistUrl, seconds: SECONDS, record })
    stop.abort()
    await encoder
    t.same(
      result.findings.map(({ rule, evidence }) => ({ id: rule.id, evidence })),
      [],
    )
    t.equal(result.failures, 0)
    t.ok(result.requests > SECONDS / 2)
    const replayed = await checkStream({ replay: record })
    t.same(replayed.findings, result.findings)
    t.equal(replayed.requests, result.requests)
  })
}

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
    const text = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1.000,\n0.ts\n'
    const origin = await startOrigin(t, (_, response) => response.end(text))
    const end = new AbortController()
    const reloads: number[] = []
    setTimeout(() => end.abort(), 2500)
    await follow({
      url: `${origin.url}/live.m3u8`,
      seconds: 60,
      nowMs,
      signal: end.signal,
      onExchange: ({ role, sentAtMs }) => {
        if (role === 'playlist') reloads.push(sentAtMs)
      },
    })
    t.ok(reloads.length >= 3 && reloads.length <= 5, `${reloads.length} reloads`)
  },
)
