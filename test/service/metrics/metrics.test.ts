/**
 * `/metrics` over real HTTP: who gets it, and which series streams have.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { ServerOptions } from '../../../src/index.ts'
import type { PublisherReport } from '../../../src/api/records.ts'
import { systemClock } from '../../../src/timing/clock.ts'
import { PUBLISHER_REPORT } from '../../stream/publisher-report.ts'
import { freePort } from '../../support/free-port.ts'
import { startService, type TestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const CLIP = readFileSync(new URL('../../../fixtures/demo.mpegts', import.meta.url))
const TOKEN = randomBytes(32).toString('hex')

async function scrape(url: string, authorization = `Bearer ${TOKEN}`) {
  const reply = await fetch(`${url}/metrics`, { headers: { authorization } })
  return { status: reply.status, headers: reply.headers, text: await reply.text() }
}

/** Publishes the clip once, from a byte on. @returns the encoder, whose counters tests may replace */
async function feed({ server }: Pick<TestService, 'server'>, streamId: string, fromByte = 0) {
  await server.startStream({ streamId })
  const encoder = {
    counters: { ...PUBLISHER_REPORT, packetsLost: 7, bytesReceived: 1000 } as PublisherReport,
    get lastPacketUs() {
      return systemClock.nowUs()
    },
    report: () => encoder.counters,
    close: () => undefined,
  }
  const publication = server.findStream(streamId)!.publish(encoder)
  for (let at = fromByte; at < CLIP.length; at += 1316)
    publication.push(CLIP.subarray(at, at + 1316))
  return encoder
}

const valueOf = (text: string, series: string) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${series} `))
    ?.split(' ')[1]

t.test('there are no metrics without METRICS_PORT and METRICS_TOKEN', async (t) => {
  const { url } = await startService(t)
  const { status, text } = await scrape(url)
  t.equal(status, 404)
  t.match(JSON.parse(text), { code: 'ROUTE_NOT_FOUND' })
})

t.test('METRICS_TOKEN is required as a bearer token', async (t) => {
  const old = randomBytes(32).toString('hex')
  const { url } = await startService(t, { metrics: { token: `${TOKEN},${old}` } })
  for (const authorization of ['', 'Bearer', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, TOKEN]) {
    const { status, headers, text } = await scrape(url, authorization)
    t.equal(status, 401, authorization)
    t.equal(headers.get('www-authenticate'), 'Bearer')
    t.match(JSON.parse(text), { success: false, code: 'METRICS_TOKEN_INVALID' })
  }
  t.equal((await scrape(url, `Bearer ${old}`)).status, 200)
  const { status, text } = await scrape(url, `bearer ${TOKEN}`)
  t.equal(status, 200)
  t.match(text, /^millrace_api_refusals_total\{reason="METRICS_TOKEN_INVALID"\} 5$/m)
})

t.test('METRICS_PORT has metrics and health, and nothing else', async (t) => {
  const port = await freePort()
  const { url } = await startService(t, { metrics: { port } })
  t.equal((await scrape(url)).status, 404, 'not on the HTTP port')
  const own = `http://127.0.0.1:${port}`
  t.equal((await scrape(own, '')).status, 200)
  t.equal((await fetch(`${own}/health/ready`)).status, 200)
  for (const path of ['/api/status', '/video/a/playlist.m3u8', '/watch/a']) {
    t.equal((await fetch(own + path)).status, 404, path)
  }
})

t.test('names the setting of a port that is in use', async (t) => {
  const port = await freePort()
  await startService(t, { metrics: { port } })
  await t.rejects(startService(t, { metrics: { port } }), {
    code: 'ADDRESS_IN_USE',
    message: `port ${port} on 127.0.0.1 is in use: choose another metrics.port`,
  })
})

t.test('a stream has series from its first encoder until it is forgotten', async (t) => {
  const service = await startService(t, {
    metrics: { token: TOKEN },
    hls: { lingerSec: 1 },
  })
  const { server, url } = service
  const { streamKey } = await server.startStream({ streamId: 'studio' })
  const before = await scrape(url)
  t.match(before.text, /^millrace_streams\{state="READY"\} 1$/m)
  t.notMatch(before.text, /studio/)

  await feed(service, 'studio')
  const { playlistUrl } = server.status('studio')
  const path = new URL(playlistUrl).pathname
  await until('a playlist', async () => (await fetch(url + path)).ok)
  const playlist = await (await fetch(url + path)).text()
  const segment = /^\S+-\d+\.ts$/m.exec(playlist)![0]
  const sizeBytes = (await (await fetch(new URL(segment, url + path))).arrayBuffer()).byteLength
  const { text } = await scrape(url)
  t.equal(valueOf(text, 'millrace_srt_packets_lost_total{stream="studio"}'), '7')
  t.equal(
    valueOf(text, 'millrace_hls_sent_bytes_total{stream="studio",kind="segment"}'),
    String(sizeBytes),
  )
  t.match(text, /^millrace_streams\{state="STREAMING"\} 1$/m)
  const secrets = [TOKEN, streamKey, service.hmacSecret, service.jwtSecret, '192.0.2.1']
  for (const secret of secrets) t.notOk(text.includes(secret), 'no secret and no address')

  await server.stopStream('studio')
  t.match((await scrape(url)).text, /stream="studio"/)
  await until('a forgotten stream', async () => !(await scrape(url)).text.includes('studio'))
})

t.test('a stream that begins with its slate has series before its first encoder', async (t) => {
  const service = await startService(t, {
    metrics: { token: TOKEN },
    slateDir: t.testdir({ 'slate.ts': CLIP }),
  })
  await service.server.startStream({ streamId: 'studio', slate: 'slate.ts', alwaysOn: true })
  await until('the slate is on air', () => service.server.status('studio').onAir === 'slate')
  const { text } = await scrape(service.url)
  t.match(text, /^millrace_streams\{state="READY"\} 1$/m)
  t.match(text, /stream="studio"/)
})

t.test('METRICS_PER_STREAM=never adds streams up, and sums never decrease', async (t) => {
  const options = { metrics: { token: TOKEN, perStream: 'never' }, hls: { lingerSec: 0 } } as const
  const service = await startService(t, options)
  const encoders = [await feed(service, 'a'), await feed(service, 'b')]
  const lost = async () => {
    const { text } = await scrape(service.url)
    t.notMatch(text, /stream="/)
    t.notMatch(text, /^millrace_srt_rtt_seconds/m, 'a sum of round-trip times means nothing')
    return valueOf(text, 'millrace_srt_packets_lost_total')
  }
  t.equal(await lost(), '14')
  encoders[0]!.counters = { ...PUBLISHER_REPORT, packetsLost: 10 }
  t.equal(await lost(), '17', 'three more')
  encoders[0]!.counters = { ...PUBLISHER_REPORT, packetsLost: 1 }
  t.equal(await lost(), '18', 'a new connection counts from 0')
  await service.server.stopStream('b')
  await until('a forgotten stream', () => service.server.findStream('b') === undefined)
  t.equal(await lost(), '18', 'a forgotten stream leaves its share')
})

t.test('METRICS_PER_STREAM=auto adds more than 500 streams up', async (t) => {
  const options: Partial<ServerOptions> = { metrics: { token: TOKEN } }
  const { server, url } = await startService(t, options)
  const connect = async (streamId: string) => {
    await server.startStream({ streamId })
    const lastPacketUs = systemClock.nowUs()
    const encoder = { lastPacketUs, report: () => PUBLISHER_REPORT, close: () => undefined }
    server.findStream(streamId)!.publish(encoder)
  }
  for (let i = 0; i < 500; i++) await connect(`s${i}`)
  const own = await scrape(url)
  t.equal(own.text.match(/^millrace_srt_packets_lost_total\{stream="s\d+"\}/gm)?.length, 500)
  await connect('one-more')
  const summed = await scrape(url)
  t.match(summed.text, /^millrace_stream_publishers_total 501$/m)
  t.notMatch(summed.text, /stream="/)
})

t.test('media that is dropped is counted by reason, with a series for each', async (t) => {
  const { server, url } = await startService(t, { metrics: { token: TOKEN } })
  await feed({ server }, 'studio', Math.floor(CLIP.length / 3 / 188) * 188)
  const { text } = await scrape(url)
  const dropped = (reason: string) =>
    Number(valueOf(text, `millrace_media_dropped_total{stream="studio",reason="${reason}"}`))
  t.ok(dropped('before_key_frame') > 0)
  t.equal(dropped('oversize'), 0)
  t.equal(valueOf(text, 'millrace_hls_forced_cuts_total{stream="studio"}'), '0')
  t.ok(dropped('cmaf') > 0, 'audio frames before the first key frame')
})

t.test('simultaneous scrapes share one result', async (t) => {
  const { server, url } = await startService(t, { metrics: { token: TOKEN } })
  await server.startStream({ streamId: 'a' })
  const all = await Promise.all(Array.from({ length: 20 }, () => scrape(url)))
  t.ok(all.every(({ status, text }) => status === 200 && text.endsWith('\n')))
})
