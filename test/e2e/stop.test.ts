/**
 * End of a stream by the API, by a timeout, and by a signal to the process.
 */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { connect } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { start } from '../support/process.ts'
import { callApi, startService, tryApi } from '../support/service.ts'
import { until } from '../support/until.ts'
import { segmentUris } from '../support/viewer.ts'
import { findEvent, receivedTypes, startWebhookReceiver } from '../support/webhook-receiver.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

t.test(
  'stop-stream disconnects, ends the playlist, sends a webhook, and removes files after the linger time',
  async (t) => {
    const { server, api, tryApi, url, hmacSecret } = await startService(t, {
      hls: { lingerSec: 2, segmentSec: 1 },
    })
    const hooks = await startWebhookReceiver(t)
    await api('start-stream', { stream_id: 'studio', webhook_urls: [hooks.url] })
    const ready = await until('stream.ready', () => findEvent(hooks, 'stream.ready'))
    const encoder = publishDemo(t, ready.data['srt_url'])
    await until('stream.live', () => findEvent(hooks, 'stream.live'))
    const playlistUrl = `${url}/video/studio/playlist.m3u8`
    t.notMatch(await text(playlistUrl), /ENDLIST/)

    const stopped = await api('stop-stream', { stream_id: 'studio' })
    t.match(stopped, {
      status: 200,
      body: { success: true, data: { status: 'STOPPED', live: false } },
    })
    t.match(await text(playlistUrl), /#EXT-X-ENDLIST\n$/)
    encoder.stop()
    await encoder.end
    await until('stream.stopped', () => findEvent(hooks, 'stream.stopped'))
    t.strictSame(receivedTypes(hooks), ['stream.ready', 'stream.live', 'stream.stopped'])
    const webhook = new Webhook(hmacSecret, { format: 'raw' })
    for (const { bytes, headers, event } of hooks.received) {
      t.strictSame(webhook.verify(bytes, headers as Record<string, string>), event, 'genuine')
    }
    const again = await api('stop-stream', { stream_id: 'studio' })
    t.equal(again.status, 200, 'stopping a stopped stream is fine')

    const [uri] = segmentUris(await text(playlistUrl))
    await until('the linger is over', async () => (await fetch(playlistUrl)).status === 404)
    t.equal((await fetch(new URL(uri!, playlistUrl))).status, 404, 'its segments are gone too')
    t.equal((await tryApi('status', { stream_id: 'studio' })).status, 404)
    t.equal(server.findStream('studio'), undefined)
  },
)

t.test('a stream stops when its lost encoder stays away for the grace period', async (t) => {
  const { server } = await startService(t, { reconnectGraceSec: 1 })
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  const ended = new Promise((resolve) => server.findStream('studio')!.once('end', resolve))
  const caller = await connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey })
  await caller.close()
  t.strictSame(await ended, { reason: 'grace-expired' })
  const { status } = await server.startStream({ streamId: 'studio' })
  t.equal(status, 'READY', 'starting the id again begins a new stream')
})

t.test(
  'SIGTERM sends SHUTDOWN to the encoder, refuses others, writes ENDLIST and exits 0 without unhandled rejections',
  async (t) => {
    const env = {
      HMAC_SECRET: randomBytes(32).toString('hex'),
      JWT_SECRET: randomBytes(32).toString('hex'),
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      SRT_HOST: '127.0.0.1',
      SRT_PORT: '0',
      HLS_SEGMENT_SEC: '1',
    }
    const service = start(t, process.execPath, [CLI, 'serve'], { env })
    const listening = await until('the service listens', () =>
      /"http":"([^"]+)"/.exec(service.output()),
    )
    const url = listening[1]!
    const { body } = await callApi(url, 'start-stream', { stream_id: 'studio' }, env.HMAC_SECRET)
    const { events } = publishDemo(t, body.data['srt_url'], { mayFail: true })
    const playlistUrl = `${url}/video/studio/playlist.m3u8`
    await until('the playlist', async () => (await fetch(playlistUrl)).ok)
    t.equal((await fetch(`${url}/health/ready`)).status, 200)
    service.kill('SIGTERM')
    await until('ENDLIST', async () => (await text(playlistUrl)).includes('#EXT-X-ENDLIST'))
    const ready = await fetch(`${url}/health/ready`)
    t.equal(ready.status, 503)
    t.match(await ready.text(), /draining/)
    t.equal((await fetch(`${url}/health/live`)).status, 200)
    t.match(await tryApi(url, 'start-stream', { stream_id: 'other' }, env.HMAC_SECRET), {
      status: 503,
      body: { code: 'SHUTTING_DOWN' },
    })
    await until('the encoder is told', () => events.some((event) => event.includes('(shutdown)')))
    const { port, searchParams } = new URL(String(body.data['srt_url']))
    const caller = { host: '127.0.0.1', port: Number(port), connectTimeoutMs: 300 }
    await t.rejects(
      connect({ ...caller, streamId: searchParams.get('streamid')! }),
      { code: 'SRT_TIMEOUT' },
      'no new encoder is admitted',
    )
    t.equal((await fetch(playlistUrl)).status, 200, 'still served to players')
    t.equal(await service.exit, 0)
    t.notMatch(service.output(), /unhandled|Error:/i)
    t.notMatch(
      service.output(),
      new RegExp(`${env.HMAC_SECRET}|${env.JWT_SECRET}|token=`),
      'no secret in the log',
    )
  },
)

async function text(url: string): Promise<string> {
  return (await fetch(url)).text()
}
