/**
 * Protected playback over real SRT and HTTP.
 */
import t, { type Test } from 'tap'
import { signPlaybackToken } from '../../src/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const SECRET = 'p'.repeat(32)

function tokenFor(streamId: string, { sec = 600, address = '' } = {}): string {
  const expiresAt = new Date(Date.now() + sec * 1000)
  return signPlaybackToken({ streamId, secret: SECRET, expiresAt, ...(address && { address }) })
}

/** Starts a low-latency stream that needs tokens. */
async function startStream(t: Test) {
  const service = await startService(t, { playbackSecret: SECRET, trustProxy: '127.0.0.1' })
  const { srtUrl } = await service.server.startStream({ streamId: 'studio' })
  publishDemo(t, srtUrl)
  const statusOf = async (path: string) => (await fetch(service.url + path)).status
  const path = '/video/studio/playlist.m3u8'
  await until(
    'the playlist',
    async () => (await statusOf(`/t/${tokenFor('studio')}${path}`)) === 200,
  )
  return { ...service, statusOf, path }
}

t.test('playback_token makes a running stream public, and protects it again', async (t) => {
  const { api, statusOf, path, url } = await startStream(t)
  for (const name of ['playlist.m3u8', 'master.m3u8']) {
    const reply = await fetch(`${url}/t/${tokenFor('studio')}/video/studio/${name}`)
    const uris = [...(await reply.text()).matchAll(/^[^#\n].*$|URI="[^"]*"/gm)].map(([uri]) => uri)
    t.ok(uris.length > 0)
    t.notOk(
      uris.some((uri) => uri.includes('/')),
      `${name} has relative URIs only`,
    )
  }
  const set = (playback_token?: boolean) =>
    api('start-stream', { stream_id: 'studio', playback_token })
  t.equal(await statusOf(path), 403)
  await set(false)
  t.equal(await statusOf(path), 200)
  await set()
  t.equal(await statusOf(path), 200, 'kept by a start without it')
  await set(true)
  t.equal(await statusOf(path), 403)
})

t.test('playback_token true is refused without PLAYBACK_SECRET', async (t) => {
  const { tryApi, server } = await startService(t)
  const start = (playback_token: unknown) =>
    tryApi('start-stream', { stream_id: 'studio', playback_token })
  t.match(await start(true), {
    status: 400,
    body: {
      error: 'playback_token must be false or absent: PLAYBACK_SECRET is not set',
      code: 'BODY_INVALID',
    },
  })
  t.match(await start('no'), {
    status: 400,
    body: { error: 'playback_token must be true or false' },
  })
  t.equal(server.findStream('studio'), undefined)
  t.match(await start(false), { status: 200 })
})

t.test('the record tells whether viewers need a token', async (t) => {
  const { api } = await startService(t, { playbackSecret: SECRET })
  const needsToken = async () => [
    (await api('status', { stream_id: 'studio' })).body.data['playback_token'],
    ((await api('streams', {})).body.data['streams'] as { playback_token: boolean }[])[0]
      ?.playback_token,
  ]
  await api('start-stream', { stream_id: 'studio' })
  t.strictSame(await needsToken(), [true, true])
  await api('start-stream', { stream_id: 'studio', playback_token: false })
  t.strictSame(await needsToken(), [false, false])

  const open = await startService(t)
  await open.api('start-stream', { stream_id: 'studio' })
  t.match(await open.api('status', { stream_id: 'studio' }), {
    body: { data: { playback_token: false } },
  })
})

t.test('a token with an address is for the client that a trusted proxy names', async (t) => {
  const { url } = await startService(t, { playbackSecret: SECRET, trustProxy: '127.0.0.1' })
  const accessOf = async (address: string, forwardedFor: string) => {
    const headers = { 'x-forwarded-for': forwardedFor }
    return (await fetch(`${url}/t/${tokenFor('studio', { address })}/video/studio`, { headers }))
      .status
  }
  t.equal(await accessOf('192.0.2.7', '192.0.2.7'), 204)
  t.equal(await accessOf('192.0.2.7', '192.0.2.7:50123'), 204, 'with a port')
  t.equal(await accessOf('192.0.2.7', '198.51.100.9, 192.0.2.7:50123, 127.0.0.1:443'), 204)
  t.equal(await accessOf('192.0.2.7', '192.0.2.7, 198.51.100.9:50123'), 403, 'the last hop counts')
  t.equal(await accessOf('2001:db8:1:2::7', '[2001:db8:1:2::8]:50123'), 204)
  t.equal(await accessOf('2001:db8:1:2::7', '2001:db8:1:3::7'), 403)
  t.equal(await accessOf('192.0.2.7', 'unknown'), 400)
  t.equal(await accessOf('', 'unknown'), 204, 'a token without an address needs none')

  const direct = await startService(t, { playbackSecret: SECRET })
  const path = `/t/${tokenFor('studio', { address: '192.0.2.7' })}/video/studio`
  const reply = await fetch(direct.url + path, { headers: { 'x-forwarded-for': '192.0.2.7' } })
  t.equal(reply.status, 403, 'any client can send the header')
})
