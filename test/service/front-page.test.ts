/**
 * The pages `/`, and `/admin` without a password, over real HTTP.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { freePort } from '../support/free-port.ts'
import { startService } from '../support/service.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8' }

async function get(url: string, headers: Record<string, string> = {}) {
  const reply = await fetch(url, { headers, redirect: 'manual' })
  return { status: reply.status, headers: reply.headers, text: await reply.text() }
}

t.test('/ says what this is and where streams, API and dashboard are', async (t) => {
  const service = await startService(t)
  for (const headers of [{}, BROWSER]) {
    const page = await get(service.url, headers)
    t.equal(page.status, 200)
    t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
    t.match(page.text, '<p>Live video in over SRT, out as HLS. The service runs.</p>')
    for (const path of ['/watch/{stream_id}', '/video/{stream_id}/master.m3u8', 'start-stream'])
      t.match(page.text, path)
    const links = [...page.text.matchAll(/ href="([^"]+)"/g)].map(([, href]) => href!)
    t.strictSame(links, ['data:,', 'api/openapi.json'])
  }
  t.equal((await get(`${service.url}/api/openapi.json`)).status, 200)
})

t.test('/ leads to the dashboard where there is one', async (t) => {
  const { url } = await startService(t, { admin: { password: 'a'.repeat(16) } })
  t.match((await get(url)).text, '<a href="admin">dashboard</a>')
})

t.test('the pages load nothing, and are in no frame', async (t) => {
  const service = await startService(t)
  for (const path of ['/', '/admin']) {
    const { headers, text } = await get(service.url + path, BROWSER)
    const policy = headers.get('content-security-policy') ?? ''
    t.match(policy, /^default-src 'none'; .*frame-ancestors 'none'$/)
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.notMatch(text, /https?:|<script|<link rel="style| style=| src=/)
    const [, style = ''] = /<style>(.*)<\/style>/.exec(text) ?? []
    t.match(policy, createHash('sha256').update(style).digest('base64'))
  }
})

t.test('/ names the path with a token where viewers need one', async (t) => {
  const { url } = await startService(t, { playbackSecret: 'p'.repeat(32) })
  t.match((await get(url)).text, '/t/{token}/watch/{stream_id}')
})

t.test('/ tells of the API at its own port alone', async (t) => {
  const apiPort = await freePort()
  const { url } = await startService(t, { apiPort, apiHost: '127.0.0.1' })
  t.notMatch((await get(url)).text, /api|admin/i)
  const page = await get(`http://127.0.0.1:${apiPort}`)
  t.match(page.text, 'POST /api/start-stream')
  t.notMatch(page.text, '/watch/')
  t.equal(
    (await get(`${url}/admin`)).headers.get('content-type'),
    'application/json; charset=utf-8',
  )
})

t.test('/admin without a password says which setting to set', async (t) => {
  const service = await startService(t)
  for (const path of ['/admin', '/admin/']) {
    const page = await get(service.url + path, BROWSER)
    t.equal(page.status, 404)
    t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
    t.match(page.text, 'The dashboard is off: <code>ADMIN_PASSWORD</code> is not set.')
  }
})

t.test('a client that asks for no page gets the error', async (t) => {
  const service = await startService(t)
  const cases = { '/': ['application/json'], '/admin': ['application/json', '*/*', 'text/plain'] }
  for (const [path, accepted] of Object.entries(cases))
    for (const accept of accepted) {
      const { status, text } = await get(service.url + path, { accept })
      t.equal(status, 404, `${path} ${accept}`)
      t.match(JSON.parse(text), { success: false, code: 'ROUTE_NOT_FOUND' })
    }
})

t.test('caches keep neither page nor error for the other client', async (t) => {
  const service = await startService(t)
  for (const path of ['/', '/admin'])
    for (const accept of ['text/html', 'application/json']) {
      const { headers } = await get(service.url + path, { accept })
      const kept = [headers.get('cache-control'), headers.get('vary')]
      t.strictSame(kept, ['no-store', 'Accept'], `${path} ${accept}`)
    }
})
