import t from 'tap'
import { MillraceError } from '../src/errors.ts'
import { createLogger } from '../src/logger.ts'
import { createNotifier } from '../src/notifications.ts'
import type { WebhookDispatcher } from '../src/webhook/dispatcher.ts'

t.test('an encoder that is refused again and again does not fill the log', async (t) => {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => 0 }
  const noStreams = {} as WebhookDispatcher
  const notifier = createNotifier(logger, noStreams, { clock, playlistUrl: String })
  const request = {
    remoteAddress: '192.0.2.1',
    remotePort: 5000,
    peerVersion: '1.5.1',
    streamId: 'mode=publish,rid=studio,token=secret',
  }
  const refuse = () =>
    notifier.rejected(request, new MillraceError('STREAM_KEY_EXPIRED'), undefined)

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
  t.notMatch(JSON.stringify(lines), /secret/)
})
