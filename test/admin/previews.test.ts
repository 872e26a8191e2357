/**
 * Previews that have to be fetched from another node first.
 */
import Fastify from 'fastify'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { PlayableStream } from '../../src/playback/playback-source.ts'
import { previews } from '../../src/admin/previews.ts'
import { createErrorHandler } from '../../src/http/error-handler.ts'
import { until } from '../support/until.ts'

/** A dashboard with a stream whose files never come. */
async function serveSilent(t: Test) {
  let waiting = 0
  const files: PlayableStream['files'] = {
    get: () => undefined,
    availability: () => 'future',
    wait: () => {
      waiting++
      return () => void waiting--
    },
  }
  const app = Fastify()
  app.setErrorHandler(createErrorHandler(pino({ level: 'silent' })))
  const stream: PlayableStream = { status: 'STREAMING', live: true, files }
  await app.register(previews, { allStreams: { findStream: () => stream } })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const ask = async (id: string, signal: AbortSignal | null = null) =>
    (await fetch(`${url}/streams/${id}/preview.ts`, { signal })).status
  return { app, ask, count: () => waiting }
}

t.test('a preview that does not come is refused', async (t) => {
  const { ask, count } = await serveSilent(t)
  t.equal(await ask('studio'), 503)
  t.equal(count(), 0)
  t.equal(await ask('..%2fstudio'), 404)
})

t.test('a client that leaves does not wait for a preview', async (t) => {
  const { ask, count } = await serveSilent(t)
  const leave = new AbortController()
  const left = ask('studio', leave.signal).catch(() => 'left')
  await until('a wait', () => count() === 1)
  leave.abort()
  t.equal(await left, 'left')
  await until('no wait', () => count() === 0)
})

t.test('a service that closes refuses what waits', async (t) => {
  const { app, ask, count } = await serveSilent(t)
  const refused = ask('studio')
  await until('a wait', () => count() === 1)
  await app.close()
  t.equal(await refused, 503)
})
