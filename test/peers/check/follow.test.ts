/** A check of our own service over HTTP, with a real encoder: nothing is broken, and a replay agrees. */
import { join } from 'node:path'
import t from 'tap'
import { checkStream } from '../../../src/check/index.ts'
import { callApi } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { publishFinely } from '../support/fine-clip.ts'
import { createSecrets, startNodes, type NodeProcess } from '../support/node-processes.ts'
import { requireTool } from '../support/tools.ts'

const SECONDS = 12

t.jobs = 2

for (const [lowLatency, playlists] of [
  [true, ['master.m3u8', 'ts.m3u8']],
  [false, ['master.m3u8']],
] as const) {
  t.test(`finds nothing in our own service, lowLatency ${lowLatency}`, async (t) => {
    if (!requireTool(t, 'ffmpeg')) return
    // A process of its own: one that stands still beside the checker is late.
    const env = { ...createSecrets(), HLS_LOW_LATENCY: String(lowLatency) }
    const [node] = (await startNodes(t, 'serve', env, 1)) as [NodeProcess]
    const started = await callApi(
      node.url,
      'start-stream',
      { stream_id: 'studio' },
      env.HMAC_SECRET,
    )
    publishFinely(t, started.body.data['srt_url'])
    t.jobs = playlists.length
    const checks = playlists.map((playlist) =>
      t.test(playlist, async (t) => {
        const playlistUrl = `${node.url}/video/studio/${playlist}`
        await until('a playlist', async () => (await fetch(playlistUrl)).ok)
        const record = join(t.testdir(), 'record')
        const result = await checkStream({ url: playlistUrl, seconds: SECONDS, record })
        t.same(
          result.findings.map(({ rule, evidence }) => ({ id: rule.id, evidence })),
          [],
        )
        t.equal(result.failures, 0)
        t.ok(result.requests > SECONDS / 2)
        const replayed = await checkStream({ replay: record })
        t.same(replayed.findings, result.findings)
        t.equal(replayed.requests, result.requests)
      }),
    )
    await Promise.all(checks)
  })
}
