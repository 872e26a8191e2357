import { EventEmitter } from 'node:events'
import t from 'tap'
import { MillraceError } from '../../src/errors.ts'
import { limitLines } from '../../src/timing/limited-logger.ts'
import { createLogger } from '../../src/logger.ts'
import { createNotifier } from '../../src/service/notifications.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder } from '../../src/stream/publication.ts'
import type { WebhookDispatcher } from '../../src/webhook/dispatcher.ts'
import type { WebhookEvent } from '../../src/webhook/event.ts'

const urlsOf = ({ id }: LiveStream) => ({ playlistUrl: `${id}/ts`, masterUrl: `${id}/cmaf` })

t.test('limits log lines about an encoder that is refused repeatedly', async (t) => {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  let nowUs = 0
  const clock = { nowUs: () => nowUs }
  const noStreams = {} as WebhookDispatcher
  const notifier = createNotifier(limitLines(logger, clock), noStreams, { urlsOf })
  const refuse = () =>
    notifier.rejected('192.0.2.1:5000', new MillraceError('STREAM_KEY_EXPIRED'), undefined)

  for (let i = 0; i < 100; i++) refuse()
  t.equal(lines.length, 5)
  t.match(lines[0], {
    remote: '192.0.2.1:5000',
    code: 'STREAM_KEY_EXPIRED',
    srt_reject: 1010,
    msg: 'encoder rejected: Token expired',
  })
  nowUs = 1_000_000
  refuse()
  t.match(lines[5], { unlogged: 95 }, 'what was left out is counted')
  nowUs = 2_000_000
  refuse()
  t.notOk('unlogged' in lines[6]!)
})

t.test('logs why an encoder is refused during a flood of bad keys', async (t) => {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  let nowUs = 0
  const webhooks = { send: () => undefined } as unknown as WebhookDispatcher
  const notifier = createNotifier(limitLines(logger, { nowUs: () => nowUs }), webhooks, { urlsOf })
  const stream = { id: 'studio', status: 'READY', webhookUrls: [] } as unknown as LiveStream
  const remote = '192.0.2.1:5000'
  for (let sec = 0; sec < 60; sec += 5) {
    for (let call = 0; call < 50; call++) {
      notifier.rejected(remote, new MillraceError('STREAM_KEY_INVALID'), undefined)
      notifier.rejected(remote, new MillraceError('STREAM_KEY_INVALID'), stream)
    }
    notifier.rejected(remote, new MillraceError('ENCRYPTION_MISSING'), stream)
    nowUs += 5_000_000
  }
  const refusals = lines.filter(({ code }) => code === 'ENCRYPTION_MISSING')
  t.equal(refusals.length, 12, 'all of 12 refusals')
  t.match(refusals[0], { stream_id: 'studio', remote: '192.0.2.1:5000' })
})

t.test('logs a warning and sends a webhook limited by its code', async (t) => {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const sent: [readonly string[], WebhookEvent][] = []
  const webhooks = {
    send: (...args: [readonly string[], WebhookEvent]) => void sent.push(args),
  } as unknown as WebhookDispatcher
  const notifier = createNotifier(logger, webhooks, { urlsOf })
  const stream = Object.assign(new EventEmitter(), {
    id: 'studio',
    status: 'STREAMING',
    webhookUrls: ['http://192.0.2.1/'],
  }) as unknown as LiveStream
  notifier.follow(stream)
  const warning = { code: 'OPEN_GOP', message: 'switch open GOP off' }
  stream.emit('warning', warning)
  t.match(lines[1], { stream_id: 'studio', code: 'OPEN_GOP', msg: 'switch open GOP off' })
  const event = { type: 'stream.warning', streamId: 'studio', status: 'STREAMING' }
  t.strictSame(sent, [
    [['http://192.0.2.1/'], { ...event, data: warning, rateLimitKey: 'OPEN_GOP' }],
  ])
})

t.test('tells receivers where a live stream plays, for players and for others', async (t) => {
  const sent: WebhookEvent[] = []
  const webhooks = {
    send: (_urls: unknown, event: WebhookEvent) => void sent.push(event),
  } as unknown as WebhookDispatcher
  const notifier = createNotifier(createLogger('silent'), webhooks, { urlsOf })
  const stream = Object.assign(new EventEmitter(), {
    id: 'studio',
    report: () => ({ tracks: [] }),
  }) as unknown as LiveStream
  notifier.follow(stream)
  stream.emit('live')
  notifier.resumed(stream)
  const urls = { playlist_url: 'studio/ts', master_url: 'studio/cmaf' }
  t.match(sent, [
    { type: 'stream.live', data: { ...urls, tracks: [] } },
    { type: 'stream.resumed', data: urls },
  ])
})

t.test('limits log lines about an encoder that reconnects repeatedly', async (t) => {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  let nowUs = 0
  const clock = { nowUs: () => nowUs }
  const webhooks = { send: () => undefined } as unknown as WebhookDispatcher
  const notifier = createNotifier(limitLines(logger, clock), webhooks, { urlsOf })
  const report = () => ({ remote: '192.0.2.1:5000', totals: {} })
  const stream = Object.assign(new EventEmitter(), {
    id: 'studio',
    report,
  }) as unknown as LiveStream
  notifier.follow(stream)
  const loop = () => {
    stream.emit('publish', { report } as unknown as Encoder)
    stream.emit('interrupted', { reason: 'shutdown' })
    stream.emit('warning', { code: 'NO_PAT', message: 'no PAT for 2 s' })
  }
  for (let times = 0; times < 1000; times++) loop()
  t.equal(lines.length, 1 + 3 * 5, 'of 3001 lines')
  nowUs = 1_000_000
  loop()
  t.match(lines.slice(16), [{ unlogged: 995 }, { unlogged: 995 }, { unlogged: 995 }])
})
