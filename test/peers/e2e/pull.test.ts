/**
 * Streams pulled from real programs that listen: what viewers get, and what the operator learns of all that can be wrong.
 */
import t, { type Test } from 'tap'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { startService, type TestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { receivedTypes, startWebhookReceiver } from '../../support/webhook-receiver.ts'
import { requireTool } from '../support/tools.ts'

const CLIP = 'fixtures/demo.mpegts'
const PASSPHRASE = 'a passphrase of the camera'
const STUDIO = { stream_id: 'studio' }

/** Programs that send the demo clip in a loop to the caller, as shell commands. */
const SOURCES = {
  'srt-live-transmit': {
    tools: ['srt-live-transmit', 'ffmpeg'],
    command: (port: number, query: string) =>
      `ffmpeg -v error -re -stream_loop -1 -i ${CLIP} -c copy -f mpegts pipe:1 | srt-live-transmit -q -chunk:1316 file://con 'srt://:${port}?mode=listener${query}'`,
  },
  'ffmpeg mode=listener': {
    tools: ['ffmpeg'],
    command: (port: number, query: string) =>
      `ffmpeg -v error -re -stream_loop -1 -i ${CLIP} -c copy -f mpegts 'srt://127.0.0.1:${port}?mode=listener${query}'`,
  },
  'GStreamer srtsink': {
    tools: ['gst-launch-1.0'],
    command: (port: number, query: string) =>
      `gst-launch-1.0 -q videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=30/1 ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 ! mpegtsmux alignment=7 ! srtsink uri='srt://127.0.0.1:${port}?mode=listener${query}'`,
  },
} as const

/** Listens again whenever its caller has gone. */
function listen(t: Test, name: keyof typeof SOURCES, port: number, query = '') {
  const command = SOURCES[name].command(port, query)
  return start(t, 'bash', ['-c', `until false; do ${command}; sleep 0.2; done`])
}

const statusOf = async ({ api }: TestService) => (await api('status', STUDIO)).body.data

t.jobs = 4

for (const [name, { tools }] of Object.entries(SOURCES)) {
  t.test(`${name}: pulled, killed and back`, { buffered: true }, async (t) => {
    if (!requireTool(t, ...tools)) return
    const hooks = await startWebhookReceiver(t)
    const service = await startService(t, { hls: { segmentSec: 0.5 } })
    const port = await freePort()
    const query = `&passphrase=${PASSPHRASE}&pbkeylen=32`
    const source = listen(t, name as keyof typeof SOURCES, port, query)
    await service.api('start-stream', {
      ...{ ...STUDIO, webhook_urls: [hooks.url] },
      pull_url: `srt://127.0.0.1:${port}?latency=300&passphrase=${encodeURIComponent(PASSPHRASE)}`,
    })
    await until('live', async () => (await statusOf(service))['live'])
    const { pull, publisher, on_air: onAir, warnings } = await statusOf(service)
    t.match(pull, { remote: `127.0.0.1:${port}`, state: 'CONNECTED' })
    t.match(publisher, { remote: `127.0.0.1:${port}`, packets_undecryptable: 0 })
    t.ok(publisher.latency_ms >= 300)
    t.equal(onAir, 'main')
    t.notMatch(JSON.stringify(warnings), /PULL_FAILING/)

    source.kill('SIGKILL')
    const interrupted = await until('interrupted', async () => {
      const status = await statusOf(service)
      return status['status'] === 'INTERRUPTED' && status
    })
    t.match(interrupted['interruption'].reason, /^(timeout|shutdown)$/)
    await until('a warning', async () =>
      (await statusOf(service))['warnings'].some(({ code }: any) => code === 'PULL_FAILING'),
    )
    listen(t, name as keyof typeof SOURCES, port, query)
    await until('live again', async () => (await statusOf(service))['live'])
    t.match(
      (await statusOf(service))['warnings'].map(({ code }: any) => code).join(),
      /^(?!.*PULL)/,
    )
    await until(
      'the events',
      () => receivedTypes(hooks).filter((it) => it === 'stream.live').length === 2,
    )
    t.ok(receivedTypes(hooks).includes('stream.interrupted'))
    t.ok(receivedTypes(hooks).includes('stream.warning'))
  })
}

t.test('a source that falls silent is lost, and called again', { buffered: true }, async (t) => {
  if (!requireTool(t, 'srt-live-transmit', 'ffmpeg')) return
  const service = await startService(t, { hls: { segmentSec: 0.5 } })
  const port = await freePort()
  const source = listen(t, 'srt-live-transmit', port)
  await service.api('start-stream', { ...STUDIO, pull_url: `srt://127.0.0.1:${port}` })
  await until('live', async () => (await statusOf(service))['live'])
  const { calls } = (await statusOf(service))['pull']
  // It closes nothing: no packet comes any more.
  source.kill('SIGSTOP')
  await until('interrupted', async () => (await statusOf(service))['status'] === 'INTERRUPTED')
  t.match(await statusOf(service), { interruption: { reason: 'timeout' } })
  await until('called again', async () => (await statusOf(service))['pull'].calls > calls)
  source.kill('SIGCONT')
  await until('live again', async () => (await statusOf(service))['live'])
})

t.test('says what is wrong with a source, and calls on', { buffered: true }, async (t) => {
  if (!requireTool(t, 'srt-live-transmit', 'ffmpeg')) return
  const service = await startService(t, { pull: { allow: '127.0.0.1, dead.invalid, localhost' } })
  const pull = (pull_url: string) => service.api('start-stream', { ...STUDIO, pull_url })
  const failure = async (pull_url: string) => {
    await pull('')
    await pull(pull_url)
    return until('a failure', async () => {
      const { pull: peer, warnings } = await statusOf(service)
      return peer.error !== undefined && { ...peer, warnings }
    })
  }

  const [dead, encrypted, silent] = [await freePort(), await freePort(), await freePort()]
  t.match(await failure(`srt://127.0.0.1:${dead}?streamid=SECRET`), {
    error: /^no SRT peer answered at 127\.0\.0\.1:\d+ within 3 s/,
    warnings: [{ code: 'PULL_FAILING', message: /not reached/ }],
  })
  t.match(await failure('srt://dead.invalid:9000?streamid=SECRET'), {
    error: /^dead\.invalid cannot be reached/,
  })
  listen(t, 'srt-live-transmit', encrypted, `&passphrase=${PASSPHRASE}`)
  await until('refused for its passphrase', async () =>
    /1010/.test((await failure(`srt://127.0.0.1:${encrypted}?passphrase=another one`)).error),
  )
  t.match(await failure(`srt://127.0.0.1:${encrypted}`), {
    error: /1011 \(UNSECURE\); set the passphrase on both sides/,
  })
  // A listener whose input gives nothing.
  start(t, 'bash', ['-c', `sleep 600 | srt-live-transmit -q file://con srt://:${silent}`])
  await pull(`srt://127.0.0.1:${silent}`)
  await until('connected', async () => (await statusOf(service))['pull'].state === 'CONNECTED')
  await until('interrupted', async () => (await statusOf(service))['status'] === 'INTERRUPTED')
  t.match(await statusOf(service), {
    interruption: { reason: 'no-media' },
    pull: { state: 'CONNECTED' },
    warnings: [{ code: 'NO_MEDIA' }],
  })
  const told = JSON.stringify(await statusOf(service))
  t.notMatch(told, /SECRET|another one/)
})
