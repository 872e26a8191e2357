/**
 * Viewers of a service over real HTTP: in records, metrics and webhooks, never in the log.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/timing/clock.ts'
import { playback } from '../../../src/playback/fastify-plugin.ts'
import type { ServerOptions } from '../../../src/index.ts'
import { PUBLISHER_REPORT } from '../../stream/publisher-report.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { findEvent, startWebhookReceiver } from '../../support/webhook-receiver.ts'

const CLIP = readFileSync(new URL('../../../fixtures/demo.mpegts', import.meta.url))
const TOKEN = randomBytes(32).toString('hex')
const USER_AGENT = 'Mozilla/5.0 (X11; Linux x86_64)'

/** A service with the live stream `studio`. */
async function serve(t: Test, options: Partial<ServerOptions> = {}) {
  const lines: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const service = await startService(t, { metrics: { token: TOKEN }, logger, ...options })
  const { server, url } = service
  const webhooks = await startWebhookReceiver(t)
  const startLive = async (streamId: string) => {
    await server.startStream({ streamId, webhookUrls: [webhooks.url] })
    const publication = server.findStream(streamId)!.publish({
      get lastPacketUs() {
        return systemClock.nowUs()
      },
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
    for (let at = 0; at < CLIP.length; at += 1316) publication.push(CLIP.subarray(at, at + 1316))
  }
  await startLive('studio')

  /** Gets the playlist of the stream. */
  const view = async (headers: Record<string, string>, query = '') => {
    const path = `/video/studio/playlist.m3u8${query}`
    const reply = await fetch(url + path, { headers: { 'User-Agent': USER_AGENT, ...headers } })
    t.equal(reply.status, 200)
    t.match(await reply.text(), /^#EXTM3U/)
  }
  const viewers = () => server.status('studio').viewers
  return { ...service, webhooks, startLive, view, viewers, lines }
}

t.test('viewers are in records, metrics and a webhook', async (t) => {
  const { server, url, api, webhooks, startLive, view, viewers, lines } = await serve(t)
  const startMs = performance.now()
  for (const name of ['preview.ts', 'master.m3u8']) {
    t.equal((await fetch(`${url}/video/studio/${name}`)).status, 200)
    t.equal(viewers(), 0, `${name} is no sign of a viewer`)
  }
  await view({ 'CMCD-Session': 'sid="first-session"' })
  const first = await until('the webhook', () => findEvent(webhooks, 'stream.viewers'))
  t.match(first, {
    stream_id: 'studio',
    status: 'STREAMING',
    data: { viewers: 1, peak_viewers: 1 },
  })

  await view({ 'CMCD-Session': 'sid="first-session"' })
  await view({}, `?CMCD=${encodeURIComponent('bl=900,sid="second-session"')}`)
  await view({})
  await view({})
  await view({ 'User-Agent': 'AppleCoreMedia/1.0' })
  t.equal(viewers(), 4)
  t.match((await api('status', { stream_id: 'studio' })).body.data, { viewers: 4 })
  t.match((await api('streams', {})).body.data, { streams: [{ viewers: 4 }] })
  const scrape = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
  t.match(await scrape.text(), /^millrace_viewers\{stream="studio"\} 4$/m)

  // The first of another stream shows that those of this one would have come.
  await startLive('other')
  t.equal((await fetch(`${url}/video/other/playlist.m3u8`)).status, 200)
  const announced = (streamId: string) =>
    webhooks.received.filter(
      ({ event }) => event.type === 'stream.viewers' && event.stream_id === streamId,
    ).length
  await until('the webhook of the other', () => announced('other') === 1)
  const intervals = Math.floor((performance.now() - startMs) / 30_000)
  t.ok(announced('studio') <= 1 + intervals, 'the next one is due 30 s after the first')
  await server.stopStream('other')
  for (const secret of ['-session', USER_AGENT, 'AppleCoreMedia']) {
    t.notOk(lines.join('').includes(secret), 'no identity is logged')
  }

  await server.stopStream('studio')
  t.equal(viewers(), 4, 'of what is still served')
  await server.startStream({ streamId: 'studio' })
  t.equal(viewers(), 0, 'a new stream of the same id')
})

t.test('viewers behind TRUST_PROXY differ by the forwarded address', async (t) => {
  const trusting = await serve(t, { trustProxy: '127.0.0.1' })
  const direct = await serve(t)
  for (const { view } of [trusting, direct]) {
    for (const client of ['192.0.2.1:5000', '192.0.2.1:5001', '192.0.2.2', '[2001:db8::1]:5000']) {
      await view({ 'X-Forwarded-For': client })
    }
  }
  t.equal(trusting.viewers(), 3, 'on any port')
  t.equal(direct.viewers(), 1)
})

t.test('millrace/fastify counts for the service whose streams it serves', async (t) => {
  const { server, view, viewers } = await serve(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(playback, { prefix: '/live', source: server })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  const playlist = `http://127.0.0.1:${port}/live/studio/playlist.m3u8`
  const reply = await fetch(playlist, { headers: { 'User-Agent': USER_AGENT } })
  t.match(await reply.text(), /^#EXTM3U/)
  t.equal(viewers(), 1)
  await view({})
  t.equal(viewers(), 1, 'the same viewer at the port of the service')
})
