import { readFileSync } from 'node:fs'
import t from 'tap'
import { call, json, MemoryService, MemoryStream, startApp } from '../http/memory-service.ts'

t.test('serves an HTML page that only loads from its own origin for any valid id', async (t) => {
  const app = await startApp(t)
  for (const id of ['demo', 'A-z_0.9~', 'assets', 'x'.repeat(128)]) {
    const page = await call(app, 'GET', `/watch/${id}`)
    t.equal(page.status, 200)
    t.match(page.headers, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': /^default-src 'self'; /,
      'x-content-type-options': 'nosniff',
    })
    const html = page.body.toString()
    t.match(html, `<h1>${id}</h1>`)
    t.match(html, `data-playlist="../video/${id}/master.m3u8"`)
    t.match(html, `data-state="${id}/state"`)
    t.match(html, `<title>${id} · Millrace</title>`)
    t.notMatch(html, '{{')
    t.notMatch(html, /https?:|<script>|<style>| on\w+=| style=/)
  }
})

t.test('serves the layout that the address asks for', async (t) => {
  const app = await startApp(t)
  for (const [query, layout] of [
    ['', ''],
    ['?embed', 'embed'],
    ['?embed=1&latency=1', 'embed'],
    ['?embed=0', ''],
  ] as const) {
    const html = (await call(app, 'GET', `/watch/demo${query}`)).body.toString()
    t.match(html, `class="${layout}"`, query)
  }
})

t.test('names the sites that may show the page in a frame, by default all', async (t) => {
  const policyOf = async (frameAncestors?: string) => {
    const app = await startApp(t, undefined, {}, undefined, { frameAncestors })
    return (await call(app, 'GET', '/watch/demo')).headers['content-security-policy']
  }
  t.notMatch(await policyOf(), 'frame-ancestors')
  t.match(
    await policyOf("'self' https://a.example"),
    /; frame-ancestors 'self' https:\/\/a\.example$/,
  )
  t.match(await policyOf('none'), /; frame-ancestors 'none'$/)
  t.match(
    await policyOf('https://none self https://self.example'),
    /; frame-ancestors https:\/\/none 'self' https:\/\/self\.example$/,
  )
})

t.test('serves no page for invalid ids, among them all that HTML would need escaped', async (t) => {
  const app = await startApp(t)
  const markup = ['%3Cscript%3E', 'a%22b', 'a%27b', 'a%26b', '%7B%7Bstream_id%7D%7D']
  for (const id of ['..', '.demo', 'a%20b', ...markup, 'a%2fb', 'x'.repeat(129), '%00', '']) {
    for (const path of [`/watch/${id}`, `/watch/${id}/state`]) {
      const reply = await call(app, 'GET', path)
      t.equal(reply.status, 404, path)
      t.match(json(reply), { success: false, code: /NOT_FOUND$/ })
    }
  }
})

t.test('serves every asset of the page', async (t) => {
  const app = await startApp(t)
  const html = (await call(app, 'GET', '/watch/demo')).body.toString()
  const assets = [...html.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path]) => path)
  t.strictSame(assets, [
    'assets/player.css',
    'assets/live-edge.js',
    'assets/notices.js',
    'assets/panel.js',
    'assets/time-line.js',
    'assets/hls.min.js',
    'assets/player.js',
  ])
  for (const path of assets) {
    const reply = await call(app, 'GET', `/watch/${path}`)
    t.equal(reply.status, 200)
    t.match(reply.headers['content-type'], path!.endsWith('.css') ? 'text/css' : 'text/javascript')
    t.match(reply.headers['cache-control'], /^public, max-age=\d+$/)
    const again = { 'if-none-match': String(reply.headers['etag']) }
    t.equal((await call(app, 'GET', `/watch/${path}`, { headers: again })).status, 304)
  }
  const hls = await call(app, 'GET', '/watch/assets/hls.min.js')
  t.ok(hls.body.equals(readFileSync('node_modules/hls.js/dist/hls.min.js')))
  for (const name of ['other.js', 'index.html', 'player.d.ts']) {
    t.equal((await call(app, 'GET', `/watch/assets/${name}`)).status, 404, name)
  }
})

t.test('reveals the state of a stream, its times, and nothing else', async (t) => {
  const service = new MemoryService()
  const app = await startApp(t, service)
  t.equal((await call(app, 'GET', '/watch/demo/state')).status, 404)
  service.streams.set(
    'demo',
    Object.assign(new MemoryStream(), { status: 'STREAMING', live: true }),
  )
  const askedMs = Date.now()
  const reply = await call(app, 'GET', '/watch/demo/state')
  t.equal(reply.headers['cache-control'], 'no-store')
  const { time } = json(reply)['data'] as { time: string }
  t.ok(Date.parse(time) >= askedMs && Date.parse(time) <= Date.now())
  t.strictSame(json(reply), { success: true, data: { status: 'STREAMING', live: true, time } })

  const sinceMs = Date.parse('2026-03-01T12:00:00Z')
  const since = new Date(sinceMs).toISOString()
  const times = { stateSinceMs: sinceMs, stopsAtMs: sinceMs + 120_000 }
  const stream = Object.assign(service.streams.get('demo')!, { live: false, ...times })
  const data = async () => json(await call(app, 'GET', '/watch/demo/state'))['data']
  stream.status = 'INTERRUPTED'
  const interrupted = { live: false, since, stops_at: '2026-03-01T12:02:00.000Z' }
  t.match(await data(), { status: 'INTERRUPTED', ...interrupted })
  stream.status = 'READY'
  t.notMatch(await data(), { stops_at: /./ }, 'the expiry of a key is not for viewers')
})

t.test('the state of a stream that is not live tells what can be played already', async (t) => {
  const service = new MemoryService()
  const app = await startApp(t, service)
  const stateOf = async (stream: object, ...playlists: readonly string[]) => {
    const files = {
      get: () => undefined,
      availability: (name: string) => (playlists.includes(name) ? 'current' : 'unknown'),
    } as const
    service.stored.set('demo', { status: 'READY', live: false, ...stream, files })
    return json(await call(app, 'GET', '/watch/demo/state'))['data']
  }
  const all = ['master.m3u8', 'playlist.m3u8']
  const slate = { onAir: 'slate' }
  t.match(await stateOf(slate, ...all), { status: 'READY', live: false, slate: true })
  t.notMatch(await stateOf(slate), { slate: true }, 'before its first playlist')
  t.notMatch(await stateOf({ onAir: 'main' }, ...all), { slate: true })
  t.notMatch(await stateOf({}, ...all), { slate: true })
  const first = { status: 'STREAMING', isBeginning: true, onAir: 'main' }
  t.match(await stateOf(first, 'master.m3u8'), { live: false, playable: true }, 'the first parts')
  t.notMatch(await stateOf(first), { playable: true }, 'before the first parts')
  const again = { ...first, isBeginning: false }
  t.notMatch(await stateOf(again, 'master.m3u8'), { playable: true }, 'after an interruption')
})
