/**
 * deploy/nginx.conf in front of a service: TLS, HTTP/2, playback tokens, and one request to the service for many viewers.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { signPlaybackToken, type ServerOptions } from '../../../src/index.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { callStream, openSession } from '../../http/http2-client.ts'
import { writeCertificate } from '../../support/certificate.ts'
import { freePorts } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const CONF = fileURLToPath(new URL('../../../deploy/nginx.conf', import.meta.url))
const SECRET = 'p'.repeat(32)
/** With low latency. */
const PLAYLIST = 'cmaf-video-1.m3u8'
const SEGMENT = /^[^#].*\.m4s$/m

/** Replaces each text, which has to be there. */
function replaceAll(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`deploy/nginx.conf lacks ${from}`)
    return result.replaceAll(from, to)
  }, text)
}

/** Starts nginx in front of a service with the low-latency stream `studio`. */
async function startFront(t: Test, options: Partial<ServerOptions> = {}) {
  const { server } = await startService(t, options)
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  publishDemo(t, srtUrl, { mayFail: true })

  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  // The worker of a root process has another user.
  chmodSync(folder, 0o755)
  const [plain, tls] = await freePorts(2)
  const certificate = writeCertificate(t)
  const errorLog = join(folder, 'error.log')
  // Ports, paths and the number of processes of this test; all else is to the letter.
  const conf = replaceAll(readFileSync(CONF, 'utf8'), {
    'worker_processes auto': 'worker_processes 1',
    'worker_rlimit_nofile 65536;': '',
    'worker_connections 16384': 'worker_connections 256',
    '/run/nginx.pid': join(folder, 'pid'),
    '/var/log/nginx/error.log': errorLog,
    '/dev/shm/millrace': join(folder, 'cache'),
    '127.0.0.1:8080;': `127.0.0.1:${server.httpPort};`,
    'listen 80;': `listen 127.0.0.1:${plain};`,
    'listen [::]:80;': '',
    'listen 443 ssl': `listen 127.0.0.1:${tls} ssl`,
    'listen [::]:443 ssl http2;': '',
    '/etc/nginx/tls/fullchain.pem': certificate.cert,
    '/etc/nginx/tls/privkey.pem': certificate.key,
    'http {': `http {
      client_body_temp_path ${folder}/body;
      proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/fastcgi;
      uwsgi_temp_path ${folder}/uwsgi;
      scgi_temp_path ${folder}/scgi;`,
    'proxy_cache millrace;': 'proxy_cache millrace; add_header X-Cache $upstream_cache_status;',
  })
  writeFileSync(join(folder, 'nginx.conf'), conf)
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
  const check = start(t, 'nginx', ['-t', ...args])
  t.equal(await check.exit, 0, check.output())
  t.notMatch(check.output(), /\[(warn|emerg)\]/)

  const nginx = start(t, 'nginx', [...args, '-g', 'daemon off;'])
  const redirect = await until('nginx answers', () => {
    if (nginx.child.exitCode !== null) throw new Error(`nginx ended: ${nginx.output()}`)
    const url = `http://127.0.0.1:${plain}/watch/studio`
    return fetch(url, { redirect: 'manual' }).catch(() => undefined)
  })
  t.equal(redirect.status, 301)

  const session = await openSession(t, { url: `https://127.0.0.1:${tls}` })
  const get = (path: string) => callStream(session, 'GET', path)
  const readLog = () => nginx.output() + readFileSync(errorLog, 'utf8')
  return { server, get, readLog }
}

const text = (reply: { body: Buffer | string }) => reply.body.toString()

t.test('deploy/nginx.conf serves HLS over HTTP/2, and caches it', async (t) => {
  if (!requireTool(t, 'nginx')) return
  const { get } = await startFront(t)
  const playlist = await until('a playlist with a segment', async () => {
    const reply = await get(`/video/studio/${PLAYLIST}`)
    return reply.status === 200 && SEGMENT.test(text(reply)) && text(reply)
  })

  const segment = SEGMENT.exec(playlist)![0]
  const init = /EXT-X-MAP:URI="([^"]+)"/.exec(playlist)![1]
  const whole = /^[^#].*\.ts$/m.exec(text(await get('/video/studio/playlist.m3u8')))![0]
  for (const file of [segment, init, whole]) {
    const copies = await Promise.all(Array.from({ length: 8 }, () => get(`/video/studio/${file}`)))
    t.strictSame(
      copies.map(({ status }) => status),
      copies.map(() => 200),
    )
    const misses = copies.filter(({ headers }) => headers['x-cache'] === 'MISS')
    t.equal(misses.length, 1, `eight viewers of ${file} make one request`)
    t.match(copies[0]!.headers['cache-control'], /^public, max-age=\d+, immutable$/)
  }

  const hint = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(
    text(await get(`/video/studio/${PLAYLIST}`)),
  )
  const part = await get(`/video/studio/${hint?.[1]}`)
  t.equal(part.status, 200, 'a hinted part comes once it is complete')
  for (const media of [segment, init, whole, hint?.[1]]) {
    const reply = await get(`/video/studio/${media}?_HLS_msn=7&_HLS_part=1&_HLS_skip=YES`)
    t.equal(reply.headers['x-cache'], 'HIT', 'no copy of media for each directive')
  }

  const path = `/video/studio/${PLAYLIST}?_HLS_msn=`
  const next = Number(/MEDIA-SEQUENCE:(\d+)/.exec(playlist)![1]) + 1
  const [blocking, again] = [await get(`${path}${next}`), await get(`${path}${next}&_foo=1`)]
  t.match([blocking.headers['x-cache'], again.headers['x-cache']], ['MISS', 'HIT'])
  const session = (id: string) => `CMCD=${encodeURIComponent(`bl=900,sid="${id}"`)}`
  for (const query of [`${next}&${session('one')}`, `${next}&${session('two')}`]) {
    t.equal((await get(`${path}${query}`)).headers['x-cache'], 'HIT', 'no copy for each player')
  }
  const firstSeen = await get(`/video/studio/${PLAYLIST}`)
  await until('the playlist changes within the lifetime of a segment', async () => {
    return text(await get(`/video/studio/${PLAYLIST}`)) !== text(firstSeen)
  })

  t.equal((await get('/watch/studio')).status, 200)
  t.equal((await get('/api/openapi.json')).status, 404, 'the API is not reachable')
  t.equal((await get('/metrics')).status, 404)
  t.equal((await get(`/t/1.x/video/studio/${segment}`)).status, 404, 'a path of PLAYBACK_SECRET')
})

t.test('deploy/nginx.conf stores one copy for all playback tokens', async (t) => {
  if (!requireTool(t, 'nginx')) return
  const { server, get, readLog } = await startFront(t, {
    playbackSecret: SECRET,
    trustProxy: '127.0.0.1',
  })
  const tokenFor = (streamId: string, { sec = 600, address = '' } = {}) =>
    signPlaybackToken({
      streamId,
      secret: SECRET,
      expiresAt: new Date(Date.now() + sec * 1000),
      ...(address && { address }),
    })
  const token = tokenFor('studio')
  const base = `/t/${token}/video/studio`
  const playlist = await until('a playlist with a segment', async () => {
    const reply = await get(`${base}/${PLAYLIST}`)
    return reply.status === 200 && SEGMENT.test(text(reply)) && text(reply)
  })

  const file = SEGMENT.exec(playlist)![0]
  const states: unknown[] = []
  for (const each of [
    tokenFor('studio', { address: '127.0.0.1' }),
    tokenFor('studio', { sec: 700 }),
    token,
  ]) {
    const reply = await get(`/t/${each}/video/studio/${file}`)
    t.equal(reply.status, 200)
    states.push(reply.headers['x-cache'])
    t.equal(reply.headers['cache-control'], 'private, max-age=1', 'no copy in a cache behind nginx')
  }
  t.same(states, ['MISS', 'HIT', 'HIT'])

  const altered = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
  for (const [prefix, code] of [
    ['', 'PLAYBACK_TOKEN_MISSING'],
    [`/t/${altered}`, 'PLAYBACK_TOKEN_INVALID'],
    [`/t/${tokenFor('other')}`, 'PLAYBACK_TOKEN_INVALID'],
    [`/t/${tokenFor('studio', { address: '192.0.2.1' })}`, 'PLAYBACK_TOKEN_INVALID'],
    [`/t/${tokenFor('studio', { sec: -1 })}`, 'PLAYBACK_TOKEN_EXPIRED'],
  ]) {
    const reply = await get(`${prefix}/video/studio/${file}`)
    t.equal(reply.status, 403, `${code} although the file is stored`)
    t.match(JSON.parse(text(reply)), { code })
  }

  const hint = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(text(await get(`${base}/${PLAYLIST}`)))
  t.equal((await get(`${base}/${hint?.[1]}`)).status, 200, 'a hinted part')
  const next = Number(/MEDIA-SEQUENCE:(\d+)/.exec(playlist)![1]) + 1
  const blocking = `/video/studio/${PLAYLIST}?_HLS_msn=${next}`
  const [first, other] = [
    await get(`/t/${token}${blocking}`),
    await get(`/t/${tokenFor('studio', { sec: 800 })}${blocking}`),
  ]
  t.match([first.headers['x-cache'], other.headers['x-cache']], ['MISS', 'HIT'])
  t.equal((await get(`/t/${token}/watch/studio`)).status, 200)

  const shortLived = await until('a token that has not expired before it is used', async () => {
    const token = tokenFor('studio', { sec: 2 })
    return (await get(`/t/${token}/video/studio/${file}`)).status === 200 && token
  })
  await until('the token is refused', async () => {
    return (await get(`/t/${shortLived}/video/studio/${file}`)).status === 403
  })

  await server.close()
  await until('nginx fails', async () => (await get(`${base}/master.m3u8`)).status === 502)
  t.notMatch(readLog(), token.slice(-20), 'no token in the error log')
})

t.test('deploy/nginx.conf asks Millrace for the URL that is the cache key', async (t) => {
  if (!requireTool(t, 'nginx')) return
  const { get } = await startFront(t)
  const path = `/video/studio/${PLAYLIST}`
  await until('a playlist', async () => (await get(path)).status === 200)
  for (const same of [`/video/x/%2e%2e/studio/${PLAYLIST}`, `/video//studio/${PLAYLIST}`]) {
    t.equal((await get(same)).status, 200, same)
  }
  for (const other of [
    `${path}%20HTTP/1.1%0d%0aHost:%20x`,
    '/video/studio%0d%0aHost:%20x/playlist.m3u8',
    '/t/1.x%0d%0aHost:%20x/video/studio/playlist.m3u8',
    '/api/..%2fwatch%2fstudio%0d%0aHost:%20x',
    '/admin/streams/..%2f..%2fwatch%2fstudio/history',
  ]) {
    const reply = await get(other)
    t.equal(reply.status, 404, other)
    t.match(text(reply), /nginx/, 'without a request to Millrace')
  }
  const state = await get('/admin/streams/..%2f..%2fwatch%2fstudio/state')
  t.match(JSON.parse(text(state)), { data: { status: 'STREAMING' } }, 'the path that nginx checked')
  const encoded = await get(`${path}?%5fHLS_msn=x&_HLS_skip=NO`)
  t.equal(encoded.status, 200, 'a directive that is not in the key is not passed on')
  t.equal((await get(`${path}?_HLS_msn=x`)).status, 400)
  t.equal((await get(path)).status, 200)
})
