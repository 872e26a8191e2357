/**
 * deploy/nginx.conf in front of a service: TLS, HTTP/2, and one request to the service for many viewers.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { publish } from '../../src/publisher/publisher.ts'
import { callStream, openSession } from '../http/http2-client.ts'
import { writeCertificate } from '../support/certificate.ts'
import { freePorts } from '../support/free-port.ts'
import { start } from '../support/process.ts'
import { startService } from '../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../support/until.ts'

const CONF = fileURLToPath(new URL('../../deploy/nginx.conf', import.meta.url))
const CLIP = new URL('../../fixtures/demo.mpegts', import.meta.url)

/** Replaces each text, which has to be there. */
function replaceAll(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`deploy/nginx.conf lacks ${from}`)
    return result.replaceAll(from, to)
  }, text)
}

t.test('deploy/nginx.conf serves HLS over HTTP/2, and caches it', async (t) => {
  if (!requireTool(t, 'nginx')) return
  const { server } = await startService(t)
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const stop = new AbortController()
  const encoder = publish({ file: CLIP, url: srtUrl, loop: true, signal: stop.signal })
  t.teardown(async () => {
    stop.abort()
    await encoder.catch(() => undefined)
  })

  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  // The worker of a root process has another user.
  chmodSync(folder, 0o755)
  const [plain, tls] = await freePorts(2)
  const certificate = writeCertificate(t)
  // Ports, paths and the number of processes of this test; all else is to the letter.
  const conf = replaceAll(readFileSync(CONF, 'utf8'), {
    'worker_processes auto': 'worker_processes 1',
    'worker_rlimit_nofile 65536;': '',
    'worker_connections 16384': 'worker_connections 256',
    '/run/nginx.pid': join(folder, 'pid'),
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
      scgi_temp_path ${folder}/scgi;
      add_header X-Cache $upstream_cache_status;`,
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
  const text = (reply: { body: Buffer | string }) => reply.body.toString()
  const playlist = await until('a playlist with a segment', async () => {
    const reply = await get('/video/studio/playlist.m3u8')
    return reply.status === 200 && /^[^#].*\.ts$/m.test(text(reply)) && text(reply)
  })

  const segment = /^[^#].*\.ts$/m.exec(playlist)![0]
  const copies = await Promise.all(Array.from({ length: 8 }, () => get(`/video/studio/${segment}`)))
  t.strictSame(
    copies.map(({ status }) => status),
    copies.map(() => 200),
  )
  const misses = copies.filter(({ headers }) => headers['x-cache'] === 'MISS')
  t.equal(misses.length, 1, 'eight viewers of a segment make one request')

  const hint = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(
    text(await get('/video/studio/playlist.m3u8')),
  )
  const part = await get(`/video/studio/${hint?.[1]}`)
  t.equal(part.status, 200, 'a hinted part comes once it is complete')

  const path = '/video/studio/playlist.m3u8?_HLS_msn='
  const next = Number(/MEDIA-SEQUENCE:(\d+)/.exec(playlist)![1]) + 1
  const [blocking, again] = [await get(`${path}${next}`), await get(`${path}${next}&_foo=1`)]
  t.match([blocking.headers['x-cache'], again.headers['x-cache']], ['MISS', 'HIT'])
  const firstSeen = await get('/video/studio/playlist.m3u8')
  await until('the playlist changes within the lifetime of a segment', async () => {
    return text(await get('/video/studio/playlist.m3u8')) !== text(firstSeen)
  })

  t.equal((await get('/watch/studio')).status, 200)
  t.equal((await get('/api/openapi.json')).status, 404, 'the API is not reachable')
  t.equal((await get('/metrics')).status, 404)
})
