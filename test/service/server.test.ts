import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { completeSettings } from '../../src/config/complete-settings.ts'
import { createServer, createService } from '../../src/create-server.ts'
import { createLogger } from '../../src/logger.ts'
import { explainAddress } from '../../src/service/bind-error.ts'
import type { LocalService } from '../../src/service/cluster.ts'
import { Server } from '../../src/service/server.ts'
import { writeCertificate } from '../support/certificate.ts'
import { startService } from '../support/service.ts'
import { requireAddresses } from '../support/addresses.ts'

t.test('startStream rejects what the API rejects, with the same message', async (t) => {
  const { server } = await startService(t)
  await t.rejects(server.startStream({ streamId: 'a,b' }), {
    code: 'BODY_INVALID',
    message: /^stream_id must be 1 to 128 characters/,
  })
  await t.rejects(server.control.startStream({ streamId: 'a', partMs: '200' as never }), {
    code: 'BODY_INVALID',
    message: /^part_ms must be/,
  })
  await t.rejects(server.startStream({ streamId: 'a', webhookUrls: ['ftp://example.org'] }), {
    code: 'BODY_INVALID',
    message: /^webhook_urls must be/,
  })
  await t.rejects(server.startStream({ stream_id: 'a' } as never), {
    code: 'BODY_INVALID',
    message: 'stream_id is a name of the API: expected streamId',
  })
  await t.rejects(server.startStream(undefined as never), { code: 'BODY_INVALID' })
  t.throws(() => server.status('a'), { code: 'STREAM_NOT_FOUND' }, 'nothing was started')
  t.strictSame(server.list().streams, [])
})

t.test('URLs contain the bound ports, the public host and PUBLIC_URL', async (t) => {
  const { server } = await startService(t)
  const started = await server.startStream({ streamId: 'studio' })
  const { srtUrl, playlistUrl, masterUrl, watchUrl, streamKey } = started
  t.equal(srtUrl, `srt://127.0.0.1:${server.srtPort}?streamid=${streamKey}`)
  t.equal(playlistUrl, `http://127.0.0.1:${server.httpPort}/video/studio/playlist.m3u8`)
  t.equal(masterUrl, `http://127.0.0.1:${server.httpPort}/video/studio/master.m3u8`)
  t.equal(watchUrl, `http://127.0.0.1:${server.httpPort}/watch/studio`)

  const behindProxy = await startService(t, { public: { url: 'https://live.example.org/' } })
  const proxied = await behindProxy.server.startStream({ streamId: 'studio' })
  t.equal(proxied.playlistUrl, 'https://live.example.org/video/studio/playlist.m3u8')
  t.equal(proxied.watchUrl, 'https://live.example.org/watch/studio')

  const overIPv6 = await startService(t, { public: { host: '::1' }, srt: { host: '::1' } })
  const { srtUrl: url } = await overIPv6.server.startStream({ streamId: 'studio' })
  t.match(url, `srt://[::1]:${overIPv6.server.srtPort}?streamid=mode=publish,`)
})

t.test('playlistUrl is masterUrl where a stream has no transport stream', async (t) => {
  const { server } = await startService(t, { hls: { formats: 'cmaf' } })
  const { playlistUrl, masterUrl } = await server.startStream({ streamId: 'studio' })
  t.match(masterUrl, /\/video\/studio\/master\.m3u8$/)
  t.equal(playlistUrl, masterUrl)
  t.match(server.status('studio'), { playlistUrl: masterUrl, masterUrl, options: {} })

  const own = await server.startStream({ streamId: 'own', formats: ['ts'] })
  t.match(own.playlistUrl, /\/video\/own\/playlist\.m3u8$/)
  t.match(server.status('own'), { playlistUrl: own.playlistUrl, options: { formats: ['ts'] } })
})

t.test('close ends all streams, may be called twice, and prevents further starts', async (t) => {
  const { server } = await startService(t)
  await server.startStream({ streamId: 'studio' })
  const ended = new Promise((resolve) => server.findStream('studio')!.once('end', resolve))
  const { httpPort } = server
  await Promise.all([server.close(), server.close()])
  t.strictSame(await ended, { reason: 'shutdown' })
  await t.rejects(server.startStream({ streamId: 'other' }), { code: 'SHUTTING_DOWN' })
  const refused = new Promise((resolve) =>
    connect(httpPort, '127.0.0.1').once('error', (error) => resolve('code' in error && error.code)),
  )
  t.equal(await refused, 'ECONNREFUSED')
})

t.test('names the setting of a port in use, and leaves nothing running', async (t) => {
  const { server } = await startService(t)
  const { httpPort, srtPort } = server
  await t.rejects(startService(t, { http: { port: httpPort } }), {
    code: 'ADDRESS_IN_USE',
    message: `port ${httpPort} on 127.0.0.1 is in use: choose another http.port`,
  })
  await t.rejects(startService(t, { srt: { port: srtPort } }), {
    message: /choose another srt\.port/,
  })
})

t.test('messages name the options of the library, and the variables of a command', async (t) => {
  const lines: string[] = []
  const logger = createLogger('warn', { write: (line) => void lines.push(line) })
  const secrets = { hmacSecret: 'short', jwtSecret: 'short as well' }
  const { server } = await startService(t, { logger, ...secrets })
  t.match(lines[0], /"hmacSecret has fewer than 32 characters/)
  t.throws(() => server.reload({ ...secrets, hls: { partMs: 1, segmentSec: 0 } }), {
    code: 'CONFIG_INVALID',
    message:
      /^several settings are wrong:\n  hls\.segmentSec is 0: .*\n  hls\.partMs is 1: expected [^A-Z]*$/,
  })
  const options = { ...secrets, http: { workers: 2, port: 0 } }
  const refusal = (message: RegExp) => ({ code: 'CONFIG_INVALID', message })
  await t.rejects(createServer(options), refusal(/^http\.port is 0, http\.workers is 2: expected /))
  await t.rejects(createService(options), refusal(/^HTTP_PORT is 0, HTTP_WORKERS is 2: expected /))
  options.http.port = 8080
  await t.rejects(createServer(options), refusal(/^http\.workers is 2: expected 0/))
})

t.test('rejects an address that is not of this machine', async (t) => {
  // Addresses of the blocks for documentation (RFC 3849, RFC 5737).
  await t.rejects(startService(t, { srt: { host: '127.0.0.1,2001:db8::1' } }), {
    code: 'CONFIG_INVALID',
    message: /^srt\.host: 2001:db8::1 cannot be bound; expected addresses of this machine, /,
  })
  await t.rejects(startService(t, { http: { host: '203.0.113.254' } }), {
    code: 'CONFIG_INVALID',
    message: /^http\.host: 203\.0\.113\.254 cannot be bound; expected addresses of this machine, /,
  })
})

t.test('rejects a folder of slates that is absent', async (t) => {
  await t.rejects(startService(t, { slateDir: '/absent' }), {
    code: 'CONFIG_INVALID',
    message: /^slateDir is "\/absent": expected a folder that the service can read \(ENOENT\)$/,
  })
})

t.test('names the setting of a port that the process may not open', async (t) => {
  const cause = Object.assign(new Error('listen EACCES'), { code: 'EACCES', port: 443 })
  t.throws(() => explainAddress('HTTP', '0.0.0.0')(cause), {
    code: 'CONFIG_INVALID',
    message:
      /^HTTP_PORT is 443: expected 1024 or more, unless the process has CAP_NET_BIND_SERVICE$/,
  })
})

t.test('URLs contain the first of several addresses', async (t) => {
  if (!(await requireAddresses(t, '127.0.0.2'))) return
  const srt = { host: '127.0.0.2,127.0.0.1' }
  const { server } = await startService(t, { public: {}, srt })
  const { srtUrl, playlistUrl } = await server.startStream({ streamId: 'studio' })
  t.match(srtUrl, `srt://127.0.0.2:${server.srtPort}?streamid=mode=publish,`)
  t.match(playlistUrl, `http://127.0.0.1:${server.httpPort}/`, 'where HTTP listens')
})

t.test('status reports the load of the process and its HTTP connections', async (t) => {
  const { api } = await startService(t)
  await api('start-stream', { stream_id: 'studio' })
  const { body } = await api('status', { stream_id: 'studio' })
  t.match(body.data['service'], { loop_delay_ms_p99: Number, loop_delay_ms_max: Number })
  t.strictSame(body.data['service'].http, {
    connections: 1,
    buffered_bytes: 0,
    refused: 0,
    refused_per_address: 0,
    displaced: 0,
    expired: 0,
    slow: 0,
    refused_streams: 0,
    flooding: 0,
    over_memory: 0,
  })
})

t.test('abandon cuts all connections, with TLS too', async (t) => {
  const { cert, key } = writeCertificate(t)
  for (const tls of [undefined, { cert, key }]) {
    const { server } = await startService(t, tls && { tls })
    const options = { host: '127.0.0.1', port: server.httpPort }
    const socket =
      tls === undefined ? connect(options) : connectTls({ ...options, rejectUnauthorized: false })
    await once(socket, tls === undefined ? 'connect' : 'secureConnect')
    const closed = once(socket, 'close')
    await server.abandon()
    await closed
  }
  t.pass('closed')
})

t.test('what the cluster writes to the log is limited as well', (t) => {
  const lines: string[] = []
  const config = completeSettings({ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) })
  const joinCluster = ({ logger }: LocalService) => {
    for (let line = 0; line < 100; line++) logger.warn('the registry does not answer')
    return undefined as never
  }
  const logger = createLogger('info', { write: (line) => void lines.push(line) })
  const server = new Server(config, logger, { joinCluster })
  t.equal(lines.length, 5)
  t.equal(server.list().streams.length, 0)
  t.end()
})
