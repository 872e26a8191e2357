import { readFileSync } from 'node:fs'
import t from 'tap'
import { transpileModule } from 'typescript'
import { liveEdgeScript } from '../../src/http/player/live-edge.ts'
import { playerPage } from '../../src/http/player/page.ts'
import { panelScript } from '../../src/http/player/panel.ts'
import { playerScript } from '../../src/http/player/script.ts'
import { call, json, MemoryService, MemoryStream, startApp } from './memory-service.ts'

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
    t.notMatch(html, /https?:|<script>|<style>| on\w+=| style=/)
  }
})

t.test('serves no page for invalid ids', async (t) => {
  const app = await startApp(t)
  for (const id of ['..', '.demo', 'a%20b', '%3Cscript%3E', 'a%2fb', 'x'.repeat(129), '%00', '']) {
    for (const path of [`/watch/${id}`, `/watch/${id}/state`]) {
      const reply = await call(app, 'GET', path)
      t.equal(reply.status, 404, path)
      t.match(json(reply), { success: false, code: /NOT_FOUND$/ })
    }
  }
})

t.test('escapes the stream id in the page', async (t) => {
  const html = playerPage(`"><script>alert('&')</script>`)
  t.notMatch(html, /<script>|alert\('&'\)/)
  t.match(html, '&#60;script&#62;alert(&#39;&#38;&#39;)&#60;/script&#62;')
})

t.test('serves every asset of the page', async (t) => {
  const app = await startApp(t)
  const html = (await call(app, 'GET', '/watch/demo')).body.toString()
  const assets = [...html.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path]) => path)
  t.strictSame(assets, [
    'assets/player.css',
    'assets/live-edge.js',
    'assets/panel.js',
    'assets/hls.min.js',
    'assets/player.js',
  ])
  for (const path of assets) {
    const reply = await call(app, 'GET', `/watch/${path}`)
    t.equal(reply.status, 200)
    t.match(reply.headers['content-type'], path!.endsWith('.css') ? 'text/css' : 'text/javascript')
    t.match(reply.headers['cache-control'], /^public, max-age=\d+$/)
  }
  const hls = await call(app, 'GET', '/watch/assets/hls.min.js')
  t.ok(hls.body.equals(readFileSync('node_modules/hls.js/dist/hls.min.js')))
  for (const script of [playerScript, liveEdgeScript, panelScript]) {
    t.strictSame(transpileModule(script, { reportDiagnostics: true }).diagnostics, [])
  }
  t.equal((await call(app, 'GET', '/watch/assets/other.js')).status, 404)
})

t.test('reveals the state of a stream and the time, and nothing else', async (t) => {
  const service = new MemoryService()
  const app = await startApp(t, service)
  t.equal((await call(app, 'GET', '/watch/demo/state')).status, 404)
  service.streams.set(
    'demo',
    Object.assign(new MemoryStream(), { status: 'STREAMING', live: true }),
  )
  const reply = await call(app, 'GET', '/watch/demo/state')
  t.equal(reply.headers['cache-control'], 'no-store')
  const { time } = json(reply)['data'] as { time: string }
  t.ok(Math.abs(Date.now() - Date.parse(time)) < 10_000)
  t.strictSame(json(reply), { success: true, data: { status: 'STREAMING', live: true, time } })
})
