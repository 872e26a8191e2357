/** A check of our own service over HTTP, with a real encoder: nothing is broken, and a replay agrees. */
import { join } from 'node:path'
import t from 'tap'
import { checkStream } from '../../../src/check/index.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { publishFinely } from '../support/fine-clip.ts'
import { requireTool } from '../support/tools.ts'

const SECONDS = 12

t.jobs = 2

for (const [playlist, lowLatency] of [
  ['master.m3u8', true],
  ['master.m3u8', false],
  ['ts.m3u8', true],
] as const) {
  t.test(`finds nothing in our own ${playlist}, lowLatency ${lowLatency}`, async (t) => {
    if (!requireTool(t, 'ffmpeg')) return
    const { server, url } = await startService(t, { hls: { lowLatency } })
    const { srtUrl } = await server.startStream({ streamId: 'studio' })
    publishFinely(t, srtUrl)
    const playlistUrl = `${url}/video/studio/${playlist}`
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
  })
}
