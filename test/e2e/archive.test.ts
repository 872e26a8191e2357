/**
 * A stream over SRT, and its archive in a store that somebody else wrote, read back over plain HTTP.
 */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { checkStream } from '../../src/check/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { start } from '../support/process.ts'
import { archiveOptionsOf, startS3Server } from '../support/s3-server.ts'
import { callApi, startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { segmentUris } from '../support/viewer.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

t.test('a programme with a lost encoder, complete in the store', async (t) => {
  const store = await startS3Server(t)
  const hooks = await startWebhookReceiver(t)
  const { server, api } = await startService(t, {
    archive: archiveOptionsOf(store),
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

for (const formats of ['cmaf', 'ts'] as const)
  t.test(`SIGTERM completes the archive, ${formats}`, async (t) => {
    const store = await startS3Server(t)
    const { accessKeyId, secretAccessKey } = store.credentials
    const secret = () => randomBytes(32).toString('hex')
    const env = {
      ...{ HMAC_SECRET: secret(), JWT_SECRET: secret() },
      ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: '0', SRT_HOST: '127.0.0.1', SRT_PORT: '0' },
      ...{ HLS_SEGMENT_SEC: '1', HLS_FORMATS: formats },
      ...{ ARCHIVE_URL: store.url, ARCHIVE_ENDPOINT: store.endpoint },
      ARCHIVE_PUBLIC_URL: `${store.endpoint}/archive/live`,
      ...{ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    }
    const service = start(t, process.execPath, [CLI, 'serve'], { env })
    const [, url = ''] = await until('the service listens', () =>
      /"http":"([^"]+)"/.exec(service.output()),
    )
    const { body } = await callApi(url, 'start-stream', { stream_id: 'studio' }, env.HMAC_SECRET)
    publishDemo(t, String(body.data['srt_url']), { mayFail: true })
    const name = formats === 'cmaf' ? 'cmaf-video-1.m3u8' : 'playlist.m3u8'
    const live = `${url}/video/studio/${name}`
    const listed = async (at: string) => segmentUris(await (await fetch(at)).text())
    await until('segments', async () => (await listed(live)).length >= 4)
    service.kill('SIGTERM')
    const last = await until('ENDLIST', async () => {
      const text = await (await fetch(live)).text()
      return text.includes('#EXT-X-ENDLIST') && segmentUris(text)
    })
    t.equal(await service.exit, 0)
    const [, archived = ''] = /"url":"(http[^"]*master\.m3u8)"/.exec(service.output()) ?? []
    const folder = archived.replace('master.m3u8', '')
    t.match(await (await fetch(`${folder}index.json`)).json(), { state: 'COMPLETE', gap_count: 0 })
    const text = await (await fetch(folder + name)).text()
    t.match(text, /#EXT-X-PLAYLIST-TYPE:VOD\n[^]*#EXT-X-ENDLIST\n$/)
    const uris = segmentUris(text)
    t.same(uris.slice(-last.length), last, 'up to the last segment')
    for (const uri of uris) t.equal((await fetch(folder + uri)).status, 200, uri)
    const { findings } = await checkStream({ url: archived, seconds: 5 })
    const broken = findings.filter(({ rule }) => rule.id !== 'GZIP_NOT_OFFERED')
    t.strictSame(broken, [], 'the checker finds nothing')
  })
