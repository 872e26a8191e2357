/**
 * Encryption as users meet it: `encryption` in start-stream, and `SRT_PASSPHRASE`. Secrets stay out of logs and messages.
 */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { ServerOptions } from '../../src/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Service that records its log. */
async function startLogged(t: Test, options: Partial<ServerOptions> = {}) {
  const lines: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const service = await startService(t, { ...options, logger })
  const startStream = async (body: object) => {
    const reply = await service.api('start-stream', { stream_id: 'studio', ...body })
    t.equal(reply.status, 200)
    return reply.body.data as { srt_url: string; stream_key: string; passphrase?: string }
  }
  return { ...service, startStream, log: () => lines.join('') }
}

async function isLive({ api }: TestService): Promise<boolean> {
  const { body } = await api('status', { stream_id: 'studio' })
  return body.data['live'] === true
}

/** @returns the error of an encoder that is refused */
const refusedBy = (t: Test, url: string) =>
  publishDemo(t, url, { mayFail: true }).end as Promise<Error | undefined>

const withPassphrase = (url: string, passphrase: string) =>
  `${url.replace(/&passphrase=.*$/, '')}&passphrase=${passphrase}`

t.test('start-stream and stream.ready contain the passphrase of an encrypted stream', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const service = await startLogged(t)
  const { srt_url, stream_key, passphrase } = await service.startStream({
    encryption: true,
    webhook_urls: [receiver.url],
  })
  t.match(passphrase, /^[\w-]{32}$/)
  t.ok(srt_url.endsWith(`?streamid=${stream_key}&passphrase=${passphrase}&pbkeylen=32`), srt_url)
  const { data } = await until('stream.ready', () => findEvent(receiver, 'stream.ready'))
  t.match(data, { srt_url, stream_key, passphrase })

  publishDemo(t, srt_url)
  await until('a live stream', () => isLive(service))
  const status = await service.api('status', { stream_id: 'studio' })
  const stopped = await service.api('stop-stream', { stream_id: 'studio' })
  for (const [what, text] of Object.entries({
    'the log': service.log(),
    status: JSON.stringify(status.body),
    'stop-stream': JSON.stringify(stopped.body),
  })) {
    t.notOk(text.includes(passphrase!), `${what} does not hold it`)
  }
  const again = await service.startStream({})
  t.equal(again.passphrase, undefined, 'a new stream begins in clear')
  t.notMatch(again.srt_url, /passphrase/)
})

t.test('a running stream keeps its passphrase when it is started again', async (t) => {
  const { startStream } = await startLogged(t)
  const first = await startStream({ encryption: true })
  for (const body of [{}, { encryption: true }, { encryption: false }]) {
    const { passphrase, srt_url } = await startStream(body)
    t.equal(passphrase, first.passphrase)
    t.match(srt_url, `&passphrase=${first.passphrase}&pbkeylen=32`)
  }
})

t.test('start-stream rejects an encryption that is not a boolean', async (t) => {
  const { tryApi } = await startLogged(t)
  for (const encryption of ['yes', 1, null]) {
    const reply = await tryApi('start-stream', { stream_id: 'studio', encryption })
    t.equal(reply.status, 400)
    t.match(reply.body, { code: 'BODY_INVALID', error: 'encryption must be true or false' })
  }
})

t.test('refuses a wrong or missing passphrase, and reports the reason by webhook', async (t) => {
  const receiver = await startWebhookReceiver(t)
  const service = await startLogged(t)
  const { srt_url, passphrase } = await service.startStream({
    encryption: true,
    webhook_urls: [receiver.url],
  })
  const wrong = await refusedBy(t, withPassphrase(srt_url, 'quite-another-one'))
  t.match(wrong, { code: 'SRT_REJECTED', message: /1010 \(BADSECRET\)/ })
  t.match(await until('stream.rejected', () => findEvent(receiver, 'stream.rejected')), {
    data: { reason: 'the passphrase is wrong' },
  })
  const absent = await refusedBy(t, srt_url.replace(/&passphrase=.*/, ''))
  t.match(absent, { code: 'SRT_REJECTED', message: /1011 \(UNSECURE\)/ })
  for (const code of ['PASSPHRASE_WRONG', 'ENCRYPTION_MISSING']) t.match(service.log(), code)
  const output = service.log() + String(wrong) + String(absent)
  t.notOk(output.includes(passphrase!) || output.includes('quite-another-one'))
})

t.test('requires SRT_PASSPHRASE of all encoders, and reveals it in no answer', async (t) => {
  const passphrase = 'what all of them know'
  const service = await startLogged(t, { srt: { passphrase } })
  const { srt_url } = await service.startStream({})
  t.notMatch(srt_url, /passphrase/)
  t.match(await refusedBy(t, srt_url), { message: /1011/ })
  publishDemo(t, withPassphrase(srt_url, encodeURIComponent(passphrase)))
  await until('a live stream', () => isLive(service))
  t.notOk(service.log().includes(passphrase))
})

t.test('a passphrase of the stream overrides SRT_PASSPHRASE', async (t) => {
  const common = 'what-all-of-them-know'
  const service = await startLogged(t, { srt: { passphrase: common } })
  const { srt_url } = await service.startStream({ encryption: true })
  t.match(await refusedBy(t, withPassphrase(srt_url, common)), { message: /1010/ })
  publishDemo(t, srt_url)
  await until('a live stream', () => isLive(service))
})

t.test('refuses an encoder that encrypts without a passphrase on our side', async (t) => {
  const service = await startLogged(t)
  const { srt_url } = await service.startStream({})
  t.match(await refusedBy(t, withPassphrase(srt_url, '0123456789')), { message: /1011/ })
  t.match(service.log(), 'ENCRYPTION_UNEXPECTED')
})
