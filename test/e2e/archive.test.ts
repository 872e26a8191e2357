/**
 * A stream over SRT, and its archive in a store that somebody else wrote, read back over plain HTTP.
 */
import t from 'tap'
import { checkStream } from '../../src/check/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startS3Server, type TestS3Server } from '../support/s3-server.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

function archiveTo({ endpoint, url, credentials }: TestS3Server) {
  return { ...credentials, endpoint, url, publicUrl: `${endpoint}/archive/live` }
}

t.test('a programme with a lost encoder, complete in the store', async (t) => {
  const store = await startS3Server(t)
  const hooks = await startWebhookReceiver(t)
  const { server, api } = await startService(t, {
    archive: archiveTo(store),
    webhook: { secret: '' },
    hls: { segmentSec: 1 },
  })
  const { body } = await api('start-stream', { stream_id: 'studio', webhook_urls: [hooks.url] })
  const live = new Map<string, Buffer>()
  server.findStream('studio')!.on('segment', ({ uri, bytes, rendition }) => {
    if (rendition.startsWith('cmaf')) live.set(uri, Buffer.from(bytes))
  })
  const url = body.data['srt_url'] as string
  const encoder = publishDemo(t, url)
  await until('segments', () => live.size > 6)
  encoder.stop()
  await until('interrupted', () => server.status('studio').status === 'INTERRUPTED')
  publishDemo(t, url)
  const before = live.size
  await until('more segments', () => live.size > before + 4)
  const started = await until('the webhook', () => findEvent(hooks, 'archive.started'))
  t.match(started.data['url'], /^http:.*\/archive\/live\/studio\/\d{8}T\d{6}Z-\w+\/master\.m3u8$/)
  const status = (await api('status', { stream_id: 'studio' })).body.data
  t.match(status['archive'], { state: 'RUNNING', url: started.data['url'], gaps: 0 })
  await api('stop-stream', { stream_id: 'studio' })
  const completed = await until('the webhook', () => findEvent(hooks, 'archive.completed'))
  t.match(completed.data, { state: 'COMPLETE', gaps: 0, gap_sec: 0, segments: live.size })

  const folder = String(completed.data['url']).replace('master.m3u8', '')
  for (const [uri, bytes] of live) {
    const response = await fetch(folder + uri)
    t.ok(Buffer.from(await response.arrayBuffer()).equals(bytes), `${uri}, byte for byte`)
    t.match(response.headers.get('content-type'), /^(video|audio)\/mp4$/)
  }
  const { findings } = await checkStream({ url: String(completed.data['url']), seconds: 5 })
  // The store compresses nothing, which is a fault of playlists over a certain size.
  const broken = findings.filter(({ rule }) => rule.id !== 'GZIP_NOT_OFFERED')
  t.strictSame(broken, [], 'the checker finds nothing')
})
