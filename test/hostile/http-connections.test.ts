/**
 * Held connections, which occupy their places for a bounded time.
 */
import { once } from 'node:events'
import t from 'tap'
import {
  allowSlowRequests,
  startApp,
  MemoryService,
  call,
  json,
  speak,
} from '../http/memory-service.ts'
import { until } from '../support/until.ts'
import { holdConnections, holdIdleConnections } from './attacks/held-connections.ts'
import { openConnections } from './attacks/raw-connection.ts'
import { targetAt } from './target.ts'

t.test('refuses connections at the limit with 503, and displaces idle ones', async (t) => {
  let nowMs = 0
  const app = await startApp(t, new MemoryService(), {
    limits: { maxConnections: 50, maxBufferedMib: 64 },
    clock: { nowUs: () => nowMs * 1000 },
  })
  allowSlowRequests(app)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const attack = holdIdleConnections(targetAt(app.port), stop.signal, { connections: 300 })
  await until('refusals', () => app.guard.report().refused === 250)
  t.equal(app.guard.report().connections, 50)

  const refused = await speak(app, 'GET /watch/x HTTP/1.1\r\nHost: a\r\n\r\n')
  t.match(
    refused,
    /^HTTP\/1\.1 503 Service Unavailable\r\nConnection: close\r\n.*Retry-After: 5\r\n/s,
  )
  t.match(refused, /"code":"TOO_MANY_HTTP_CONNECTIONS"\}$/)

  nowMs += 2000
  t.equal((await call(app, 'GET', '/watch/x')).status, 200, 'for the longest idle')
  t.equal(app.guard.report().displaced, 1)
  // With the refusals so far: the next line follows a minute later.
  await until('a line', () => app.log.some((line) => /HTTP connections refused: \d+/.test(line)))
  stop.abort()
  t.equal((await attack).connected >= 50, true)
  await until('none', () => app.guard.report().connections === 0)
  t.match(json(await call(app, 'GET', '/nowhere')), { code: 'ROUTE_NOT_FOUND' }, 'nothing stays')
})

t.test('displaces connections whose requests never end, for Prometheus or a viewer', async (t) => {
  let nowMs = 0
  const app = await startApp(t, new MemoryService(), {
    limits: { maxConnections: 16, maxBufferedMib: 64 },
    clock: { nowUs: () => nowMs * 1000 },
  })
  allowSlowRequests(app)
  const head =
    `POST /api/status HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: ${'0'.repeat(64)}\r\n` +
    'Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n'
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const slow = await openConnections(targetAt(app.port), 16, stop.signal)
  for (const socket of slow) socket.write(head)
  await Promise.all(slow.map((socket) => once(socket, 'readable')))
  nowMs += 2000
  t.equal((await call(app, 'GET', '/watch/x')).status, 200)
  t.equal(app.guard.report().displaced, 1)
})

t.test('ends requests sent byte by byte with 408 or a close', async (t) => {
  let nowMs = 0
  const app = await startApp(t, new MemoryService(), { clock: { nowUs: () => nowMs * 1000 } })
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const attack = holdConnections(targetAt(app.port), stop.signal, {
    each: 3,
    kinds: ['silent', 'half-sent', 'dribbling', 'half-posted', 'blank'],
    everyMs: 300,
  })
  // Node counts its 10 s itself; the guard goes by this clock.
  await until('Node has closed all but the blank ones', () => app.guard.report().connections === 3)
  t.equal(app.guard.report().expired, 0)
  nowMs += 75_000
  const { connected, answered, closedByService } = await attack
  t.equal(closedByService, connected)
  t.equal(answered, connected, 'with an answer each')
  t.equal(app.guard.report().expired, 3)
})

t.test('closes a crowd of idle connections over several seconds', async (t) => {
  let nowMs = 0
  const app = await startApp(t, new MemoryService(), { clock: { nowUs: () => nowMs * 1000 } })
  allowSlowRequests(app)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const attack = holdIdleConnections(targetAt(app.port), stop.signal, { connections: 600 })
  await until('all of them', () => app.guard.report().connections === 600)
  nowMs += 75_000
  await until('the first', () => app.guard.report().expired > 0)
  t.equal(app.guard.report().expired, 500, 'in one sweep')
  t.equal((await attack).closedByService, 600)
  t.equal(app.guard.report().expired, 600)
})
