/**
 * Streams after a restart. A second service with the same secrets represents the next process.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { connect } from '../../src/srt/index.ts'
import type { ServerOptions } from '../../src/index.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

const DEMO = new URL('../../fixtures/demo.mpegts', import.meta.url)

const SECRETS = {
  hmacSecret: randomBytes(32).toString('hex'),
  jwtSecret: randomBytes(32).toString('hex'),
}

/** Starts the next service in a later second than the keys, since only keys from earlier seconds count as older. */
async function startProcess(t: Test, options: Partial<ServerOptions> = {}) {
  const second = () => Math.floor(Date.now() / 1000)
  const before = second()
  await until('the next second', () => second() > before)
  return startService(t, { ...SECRETS, hls: { segmentSec: 1 }, ...options })
}

async function playlistNumbers(playlistUrl: string) {
  const reply = await fetch(playlistUrl)
  if (!reply.ok) return undefined
  const text = await reply.text()
  const number = (tag: string) => Number(new RegExp(`^#${tag}:(\\d+)$`, 'm').exec(text)?.[1])
  return {
    next: number('EXT-X-MEDIA-SEQUENCE') + text.match(/#EXTINF/g)!.length,
    media: number('EXT-X-MEDIA-SEQUENCE'),
    discontinuity: number('EXT-X-DISCONTINUITY-SEQUENCE'),
  }
}

t.test('a key from before the start resumes its stream and sends webhooks', async (t) => {
  const before = await startProcess(t)
  const { srtUrl, streamKey, playlistUrl } = await before.server.startStream({ streamId: 'studio' })
  publishDemo(t, srtUrl, { mayFail: true })
  const seen = await until('a playlist', () => playlistNumbers(playlistUrl))
  await before.server.close()

  const hooks = await startWebhookReceiver(t)
  const { server } = await startProcess(t, { defaultWebhookUrls: hooks.url })
  const started = await until('service.started', () => findEvent(hooks, 'service.started'))
  t.match(started.data, {
    public_url: server.publicUrl,
    srt_url: `srt://127.0.0.1:${server.srtPort}`,
    resume_streams: true,
  })
  t.notOk('stream_id' in started)
  publishDemo(t, `srt://127.0.0.1:${server.srtPort}?streamid=${streamKey}`, { mayFail: true })
  const url = `${server.publicUrl}/video/studio/playlist.m3u8`
  const after = await until('the playlist is back', () => playlistNumbers(url))
  t.ok(after.media >= seen.next, 'media sequence goes on')
  t.ok(after.discontinuity > seen.discontinuity, 'on another timeline')
  const resumed = await until('stream.resumed', () => findEvent(hooks, 'stream.resumed'))
  t.match(resumed, { stream_id: 'studio', status: 'STREAMING', data: { playlist_url: url } })
  await until('stream.live', () => findEvent(hooks, 'stream.live'))
})

t.test('a stream stopped since the start does not resume, known or not', async (t) => {
  const before = await startProcess(t)
  const keys = new Map<string, string>()
  for (const streamId of ['came-back', 'stays-away', 'other']) {
    keys.set(streamId, (await before.server.startStream({ streamId })).streamKey)
  }
  await before.server.close()

  const { server, tryApi } = await startProcess(t, { hls: { lingerSec: 0 } })
  const call = (id: string) =>
    connect({ host: '127.0.0.1', port: server.srtPort, streamId: keys.get(id)! })
  await (await call('came-back')).close()
  for (const [id, status] of Object.entries({ 'came-back': 200, 'stays-away': 404 })) {
    t.equal((await tryApi('stop-stream', { stream_id: id })).status, status)
    await t.rejects(call(id), { message: /1010/ }, id)
  }
  await until('it is forgotten', () => server.findStream('came-back') === undefined)
  await t.rejects(call('came-back'), { message: /1010/ }, 'forgotten, but not resumed')
  await (await call('other')).close()
  t.pass('another one comes back')
  await server.startStream({ streamId: 'came-back' })
  await (await call('came-back')).close()
  t.pass('and the first where the API starts it')
})

t.test('no stream resumes by a foreign or revoked key, or without RESUME_STREAMS', async (t) => {
  const before = await startProcess(t)
  const { streamKey } = await before.server.startStream({ streamId: 'studio' })
  await before.server.close()
  const refused = async (options: Partial<ServerOptions>) => {
    const { server } = await startProcess(t, options)
    const caller = connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey })
    await t.rejects(caller, { message: /1010/ })
    t.equal(server.findStream('studio'), undefined)
  }
  await refused({ jwtSecret: randomBytes(32).toString('hex') })
  await refused({ resumeStreams: false })
  const { server, tryApi } = await startProcess(t)
  const revoked = await tryApi('stop-stream', { stream_id: 'studio', revoke: true })
  t.match(revoked, { status: 404, body: { error: /are revoked/ } }, 'not known, but revoked')
  const caller = connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey })
  await t.rejects(caller, { message: /1010/ })
})

t.test('no stream resumes beyond MAX_STREAMS, and the encoder may try again', async (t) => {
  const before = await startProcess(t)
  const { streamKey } = await before.server.startStream({ streamId: 'studio' })
  await before.server.close()
  const { server } = await startProcess(t, { maxStreams: 1 })
  await server.startStream({ streamId: 'other' })
  const call = () => connect({ host: '127.0.0.1', port: server.srtPort, streamId: streamKey })
  await t.rejects(call(), { message: /1003/ })
  await server.stopStream('other')
  await (await call()).close()
})

t.test(
  'the passphrase of an encrypted stream survives a restart, also during a rotation of JWT_SECRET',
  async (t) => {
    const before = await startProcess(t)
    const started = await before.server.startStream({ streamId: 'studio', encryption: true })
    await before.server.close()
    const jwtSecret = `${randomBytes(32).toString('hex')},${SECRETS.jwtSecret}`
    const { server } = await startProcess(t, { jwtSecret })
    const query = started.srtUrl.replace(/^[^?]*/, '')
    const clear = query.replace(/&passphrase.*/, '')
    const url = `srt://127.0.0.1:${server.srtPort}`
    const open = { file: DEMO, url: url + clear, signal: AbortSignal.timeout(60_000) }
    await t.rejects(publish(open), { message: /1011/ }, 'in clear it is refused')
    publishDemo(t, url + query, { mayFail: true })
    await until('it is live again', () => server.status('studio').live)
    const again = await server.startStream({ streamId: 'studio' })
    t.equal(again.passphrase, started.passphrase)
  },
)

t.test('DEFAULT_WEBHOOK_URLS apply to streams without URLs of their own', async (t) => {
  const [defaults, own] = [await startWebhookReceiver(t), await startWebhookReceiver(t)]
  const { api } = await startProcess(t, { defaultWebhookUrls: `${defaults.url}, ${defaults.url}2` })
  const start = (stream_id: string, webhook_urls?: string[]) =>
    api('start-stream', { stream_id, ...(webhook_urls && { webhook_urls }) })
  await start('none', [])
  await start('own', [own.url])
  await start('default')
  const eventsOf = (type: string, { received }: typeof own) =>
    received.filter(({ event }) => event.type === type).map(({ event }) => event.stream_id)
  await until('stream.ready twice', () => eventsOf('stream.ready', defaults).length === 2)
  await until('stream.ready', () => eventsOf('stream.ready', own).length === 1)
  t.strictSame(eventsOf('stream.ready', defaults), ['default', 'default'], 'at both of its URLs')
  t.strictSame(eventsOf('service.started', own), [])
})
