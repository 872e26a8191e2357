/**
 * `pull_url` as callers of the API see it: what is refused, what is called, and that its secrets stay secrets.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/logger.ts'
import { connect, parseSrtUrl } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, receivedTypes, startWebhookReceiver } from '../support/webhook-receiver.ts'

const STUDIO = { stream_id: 'studio' }
const TOKEN = 'metrics'.repeat(5)

const statusOf = async ({ api }: TestService) => (await api('status', STUDIO)).body.data

/** A port where nothing answers, and what came there. */
async function deafPort(t: Test) {
  const received: Buffer[] = []
  const socket = createSocket('udp4')
  socket.on('message', (datagram) => received.push(datagram))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return { port: socket.address().port, received }
}

t.test('one service pulls the stream of another, encrypted, kicked and taken away', async (t) => {
  const source = await startService(t)
  const request = { ...STUDIO, play: true, encryption: true }
  const { srt_url, play_url } = (await source.api('start-stream', request)).body.data
  publishDemo(t, srt_url)
  const service = await startService(t, { hls: { segmentSec: 0.5 } })
  const { data } = (await service.api('start-stream', { ...STUDIO, pull_url: play_url })).body
  await until('live', async () => (await statusOf(service))['live'])
  const remote = `127.0.0.1:${source.server.srtPort}`
  const status = await statusOf(service)
  t.match(status, { on_air: 'main', pull: { remote, state: 'CONNECTED' }, publisher: { remote } })
  t.equal(status['publisher'].packets_undecryptable, 0)
  t.equal((await statusOf(source))['readers'].length, 1)

  // An encoder that has sent nothing for a second has lost its place: a busy machine may have done it.
  await until('the main encoder is there already', () =>
    connect(parseSrtUrl(data['srt_url'])).then(
      (encoder) => encoder.close().then(() => false),
      (error: unknown) => /2409/.test(String(error)),
    ),
  )
  const { calls } = await until('it is pulled still', async () => {
    const { pull } = await statusOf(service)
    return pull.state === 'CONNECTED' && pull
  })
  await service.api('kick', STUDIO)
  await until('called again', async () => (await statusOf(service))['pull'].calls > calls)
  await until('live again', async () => (await statusOf(service))['live'])

  await service.api('start-stream', { ...STUDIO, pull_url: '' })
  const { interruption } = await until('interrupted', async () => {
    const interrupted = await statusOf(service)
    return interrupted['status'] === 'INTERRUPTED' && interrupted
  })
  t.equal(interruption.reason, 'shutdown')
  await until('the reader has left', async () => (await statusOf(source))['readers'].length === 0)
  publishDemo(t, data['srt_url'])
  await until('an encoder has its place', async () => (await statusOf(service))['live'])
})

t.test('a URL that cannot be called is refused with the reason', async (t) => {
  const service = await startService(t, { pull: { allow: '192.0.2.0/24, .example.org' } })
  const refusals: Record<string, RegExp> = {
    'http://camera.example.org:9000?streamid=SECRET': /pull_url: .*does not begin with srt/,
    'srt://camera.example.org?streamid=SECRET': /the port is missing/,
    'srt://camera.example.org:9000?passphrase=SECRET': /passphrase has 6 bytes/,
    'srt://camera.example.org:9000?streamid=SECRET&mode=listener': /mode is not caller/,
    'srt://camera.example.org:9000?streamid=SECRET&latency=9000': /latency is above 8000/,
    'srt://127.0.0.1:9000?streamid=SECRET': /beyond PULL_ALLOW/,
    'srt://0x7f.1:9000?streamid=SECRET': /beyond PULL_ALLOW/,
    'srt://169.254.169.254:9000?streamid=SECRET': /link-local/,
    'srt://[fe80::1]:9000?streamid=SECRET': /link-local/,
    [`srt://camera.example.org:9000?streamid=${'SECRET'.repeat(400)}`]: /at most 2048 characters/,
  }
  for (const [pull_url, error] of Object.entries(refusals)) {
    const reply = await service.tryApi('start-stream', { ...STUDIO, pull_url })
    t.match(reply, { status: 400, body: { code: 'BODY_INVALID', error } }, pull_url)
    t.notMatch(JSON.stringify(reply.body), /SECRET/)
  }
  t.equal((await service.tryApi('status', STUDIO)).status, 404, 'nothing has started')
})

t.test('a name that leads to a forbidden address is not called', async (t) => {
  const { port, received } = await deafPort(t)
  const service = await startService(t, { pull: { allow: '192.0.2.0/24' } })
  await service.api('start-stream', { ...STUDIO, pull_url: `srt://localhost:${port}` })
  const { pull, warnings } = await until('a failure', async () => {
    const status = await statusOf(service)
    return status['warnings'].length > 0 && status
  })
  t.match(pull, { state: 'WAITING', error: /localhost is at no address that PULL_ALLOW allows/ })
  t.match(warnings, [{ code: 'PULL_FAILING', message: /PULL_ALLOW forbids it/ }])
  t.strictSame(received, [])
})

t.test('status, log, metrics and webhooks tell of a source, without its secrets', async (t) => {
  const { port, received } = await deafPort(t)
  const log: string[] = []
  const hooks = await startWebhookReceiver(t)
  const service = await startService(t, {
    logger: createLogger('trace', { write: (line) => void log.push(line) }),
    metrics: { token: TOKEN },
  })
  const pull_url = `srt://127.0.0.1:${port}?streamid=SECRET-id&passphrase=SECRET-passphrase`
  const started = await service.api('start-stream', {
    ...{ ...STUDIO, webhook_urls: [hooks.url], pull_url },
  })
  await until('a warning', () => receivedTypes(hooks).includes('stream.warning'))
  t.ok(received.length > 5, 'inductions')
  const remote = `127.0.0.1:${port}`
  const status = await statusOf(service)
  t.match(status['pull'], { remote, error: /no SRT peer answered at .* within 3 s/ })
  t.match(findEvent(hooks, 'stream.warning')?.data, {
    code: 'PULL_FAILING',
    message: /not reached/,
  })
  t.match(log.join(''), new RegExp(`PULL_FAILING.*${remote}`))
  const headers = { authorization: `Bearer ${TOKEN}` }
  const metrics = await (await fetch(`${service.url}/metrics`, { headers })).text()
  t.match(metrics, /^millrace_pull_failures_total\{reason="SRT_TIMEOUT"\} \d+$/m)
  t.match(metrics, /^millrace_pulls\{state="CONNECTED"\} 0$/m)
  await service.api('start-stream', { ...STUDIO, pull_url: '' })
  t.equal((await statusOf(service))['pull'], undefined)
  const told = [started.body, status, hooks.received.map(({ event }) => event)]
  t.notMatch(JSON.stringify(told) + log.join('') + metrics, /SECRET/)
  t.match(log.join(''), /"audit":"start-stream"/, 'the call is in the audit log')
})
