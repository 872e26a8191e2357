/**
 * Playback tokens in the path over real HTTP: who is refused, that replies are the same for all who are not, and how long
 * caches may keep them.
 */
import t, { type Test } from 'tap'
import { PlaybackTokens, signPlaybackToken } from '../../src/auth/playback-token.ts'
import { createStreamFile } from '../../src/hls/store/stream-file.ts'
import { call, json, MemoryService, MemoryStream, startApp } from '../http/memory-service.ts'

const SECRET = 'p'.repeat(32)
const PLAYLIST = '#EXTM3U\n#EXT-X-TARGETDURATION:5\n'

/** Starts an application with the stream `studio` that needs tokens, and the public stream `open`. */
async function start(t: Test) {
  const service = new MemoryService()
  const file = createStreamFile('media-playlist', {
    chunks: [Buffer.from(PLAYLIST)],
    version: 'a1-7',
    targetDurationSec: 5,
  })
  const segment = createStreamFile('segment', {
    chunks: [Buffer.alloc(188)],
    version: 'a1-7',
    targetDurationSec: 5,
  })
  for (const id of ['studio', 'open']) {
    const stream = new MemoryStream()
    stream.status = 'STREAMING'
    stream.live = true
    stream.files.set('playlist.m3u8', file)
    stream.files.set('a1-7.ts', segment)
    service.streams.set(id, stream)
  }
  service.streams.get('open')!.policy = { playbackToken: false }
  const app = await startApp(t, service, {}, undefined, {
    playbackTokens: new PlaybackTokens(() => [SECRET]),
  })
  return { ...app, get: (path: string, headers = {}) => call(app, 'GET', path, { headers }) }
}

function tokenFor(streamId: string, { sec = 60, secret = SECRET, address = '' } = {}): string {
  const expiresAt = new Date(Date.now() + sec * 1000)
  return signPlaybackToken({ streamId, secret, expiresAt, ...(address && { address }) })
}

t.test('a stream that needs a token is refused without one, and served with one', async (t) => {
  const { get } = await start(t)
  const token = tokenFor('studio')
  for (const path of ['/video/studio/playlist.m3u8', '/watch/studio/state', '/video/studio']) {
    const refused = await get(path)
    t.equal(refused.status, 403, path)
    t.match(json(refused), { code: 'PLAYBACK_TOKEN_MISSING', error: /\/t\/\{token\}\/video\// })
    t.equal(refused.headers['cache-control'], 'no-store')
    const { status } = await get(`/t/${token}${path}`)
    t.equal(status, path === '/video/studio' ? 204 : 200, path)
  }
  t.equal((await get(`/t/${token}/watch/studio`)).status, 200)
  t.equal((await get(`/t/${token}/watch/assets/player.js`)).status, 200)
})

t.test(
  'expired, foreign and altered tokens are refused, and no reply or log line has them',
  async (t) => {
    const { get, log } = await start(t)
    const valid = tokenFor('studio')
    const refused: [token: string, code: string][] = [
      [tokenFor('studio', { sec: -1 }), 'PLAYBACK_TOKEN_EXPIRED'],
      [tokenFor('open'), 'PLAYBACK_TOKEN_INVALID'],
      [tokenFor('studio', { secret: 'x'.repeat(32) }), 'PLAYBACK_TOKEN_INVALID'],
      [tokenFor('studio', { address: '192.0.2.1' }), 'PLAYBACK_TOKEN_INVALID'],
      [`${Number(valid.slice(0, 10)) + 9}${valid.slice(10)}`, 'PLAYBACK_TOKEN_INVALID'],
      ['x', 'PLAYBACK_TOKEN_INVALID'],
      ['x'.repeat(500), 'PLAYBACK_TOKEN_INVALID'],
    ]
    for (const [token, code] of refused) {
      const reply = await get(`/t/${token}/video/studio/playlist.m3u8`)
      t.equal(reply.status, 403)
      t.match(json(reply), { success: false, code, error: /token/ })
      t.match(reply.headers, { 'cache-control': 'no-store', 'access-control-allow-origin': '*' })
      t.notOk(token.length > 9 && reply.body.includes(token.slice(0, 20)), 'not in the reply')
      t.notOk(log.join('').includes(token), 'not in the log')
    }
    t.equal((await get(`/t/${tokenFor('unknown')}/video/unknown/playlist.m3u8`)).status, 404)
  },
)

t.test('a token with the address of the client is served', async (t) => {
  const { get } = await start(t)
  const token = tokenFor('studio', { address: '127.0.0.1' })
  t.equal((await get(`/t/${token}/video/studio/playlist.m3u8`)).status, 200)
})

t.test('a public stream is served without a token and with a valid one', async (t) => {
  const { get } = await start(t)
  t.equal((await get('/video/open')).status, 204)
  t.equal((await get('/video/open/playlist.m3u8')).status, 200)
  t.equal((await get(`/t/${tokenFor('open')}/video/open/playlist.m3u8`)).status, 200)
  t.equal((await get(`/t/${tokenFor('studio')}/video/open/playlist.m3u8`)).status, 403)
})

t.test('an unknown stream is refused without a token like one that needs a token', async (t) => {
  const { get } = await start(t)
  for (const path of ['/video/unknown/playlist.m3u8', '/watch/unknown/state', '/video/unknown']) {
    t.match(json(await get(path)), { code: 'PLAYBACK_TOKEN_MISSING' }, path)
  }
})

t.test(
  'replies have the same ETag and bytes, and while tokens stay valid the same headers, as without',
  async (t) => {
    const { get } = await start(t)
    const path = '/video/open/playlist.m3u8'
    const [plain, first, second] = await Promise.all([
      get(path),
      get(`/t/${tokenFor('open')}${path}`),
      get(`/t/${tokenFor('open', { sec: 99 })}${path}`),
    ])
    for (const reply of [first, second]) {
      t.same({ ...reply.headers, date: '' }, { ...plain.headers, date: '' })
      t.same(reply.body, plain.body)
    }
    const known = await get(`/t/${tokenFor('open', { sec: 50 })}${path}`, {
      'if-none-match': plain.headers['etag'],
    })
    t.equal(known.status, 304)
  },
)

t.test('Cache-Control of a reply to a token obeys expiry and address', async (t) => {
  const { get } = await start(t)
  const cachingOf = async (token: string, file: string, headers = {}) =>
    (await get(`/t/${token}/video/studio/${file}`, headers)).headers['cache-control']

  t.test('a token that stays valid does not shorten max-age', async (t) => {
    const token = tokenFor('studio')
    t.equal(await cachingOf(token, 'a1-7.ts'), 'public, max-age=30, immutable')
    t.equal(await cachingOf(token, 'playlist.m3u8'), 'public, max-age=2')
  })

  t.test('max-age ends when the token expires', async (t) => {
    const caching = await cachingOf(tokenFor('studio', { sec: 9 }), 'a1-7.ts')
    t.match(caching, /^public, max-age=[5-8], immutable$/)
    const known = { 'if-none-match': '"a1-7"' }
    t.match(await cachingOf(tokenFor('studio', { sec: 9 }), 'a1-7.ts', known), /max-age=[5-8],/)
  })

  t.test('a token with an address makes the reply private', async (t) => {
    const bound = (sec: number) => tokenFor('studio', { address: '127.0.0.1', sec })
    t.equal(await cachingOf(bound(60), 'a1-7.ts'), 'private, max-age=30, immutable')
    t.equal(await cachingOf(bound(60), 'playlist.m3u8'), 'private, max-age=2')
    t.match(await cachingOf(bound(9), 'a1-7.ts'), /^private, max-age=[5-8], immutable$/)
  })
})

t.test('there are no token paths without PLAYBACK_SECRET', async (t) => {
  const app = await startApp(t)
  for (const path of [`/t/${tokenFor('a')}/video/a/playlist.m3u8`, '/video/a']) {
    const reply = await call(app, 'GET', path)
    t.match(json(reply), { code: 'ROUTE_NOT_FOUND' }, path)
  }
})
