import t from 'tap'
import { issueStreamKey } from '../../src/auth/stream-key.ts'
import { MillraceError } from '../../src/errors.ts'
import { createAdmission, type AdmittedCaller } from '../../src/ingest/admission.ts'
import { createSrtAdmission } from '../../src/ingest/srt-admission.ts'
import type { SrtConnection } from '../../src/srt/types.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder } from '../../src/stream/publication.ts'

const REQUEST = {
  remoteAddress: '192.0.2.1',
  remotePort: 5000,
  peerVersion: '1.5.1',
  streamId: 'mode=publish,rid=studio,token=secret',
}
const { signal } = new AbortController()

const always = (secrets: readonly string[]) => () => secrets

t.test('rejects with the code of the refusal, and reports it without the key', async (t) => {
  const reported: unknown[][] = []
  const studio = { id: 'studio' } as LiveStream
  const admit = createAdmission({
    isOverloaded: () => false,
    streams: {
      find: (id) => (id === 'studio' ? studio : undefined),
      admit: () => studio,
    },
    readJwtSecrets: always(['another secret']),
    maxPublishers: 1,
    clock: { nowUs: () => 0, wallMs: () => 0 },
    sleep: () => Promise.reject(new Error('nothing to wait for')),
    defer: () => undefined,
    onRejected: (...refusal) => void reported.push(refusal),
  })
  t.strictSame(await createSrtAdmission(admit)(REQUEST, signal), { reject: 1010 })
  t.match(reported, [['192.0.2.1:5000', { code: 'STREAM_KEY_INVALID' }, studio]])
  t.notMatch(JSON.stringify(reported) + String(reported[0]![1]), /token=|secret/)
})

t.test('refuses a good key under overload, and restarts the reconnect grace', async (t) => {
  const secret = 'a secret of thirty-two characters'
  const now = new Date(1_700_000_000_000)
  const { streamKey } = await issueStreamKey({ streamId: 'studio', secret, now })
  const renewals: number[] = []
  const renewKey = (expiresAtMs: number) => void renewals.push(expiresAtMs)
  const studio = {
    id: 'studio',
    renewKey,
    status: 'INTERRUPTED',
    terms: {},
  } as unknown as LiveStream
  const admit = createAdmission({
    isOverloaded: () => true,
    streams: { find: () => studio, admit: () => studio },
    readJwtSecrets: always([secret]),
    maxPublishers: 1,
    clock: { nowUs: () => 0, wallMs: () => now.getTime() },
    sleep: () => Promise.resolve(),
    defer: () => undefined,
    onRejected: () => undefined,
  })
  const decision = await createSrtAdmission(admit)({ ...REQUEST, streamId: streamKey }, signal)
  t.strictSame(decision, { reject: 2402 })
  t.strictSame(renewals, [now.getTime() + 7200 * 1000])
})

t.test('throws programmer errors', async (t) => {
  const accept = createSrtAdmission(() => Promise.reject(new TypeError('a bug')))
  await t.rejects(accept(REQUEST, signal), TypeError)
})

t.test('hands the encoder, its payloads and its end to the stream', async (t) => {
  const calls: unknown[][] = []
  const told = (name: string) => (argument: unknown) => void calls.push([name, argument])
  let encoder: Encoder | undefined
  const admitted: AdmittedCaller = {
    ...{ program: 2, passphrase: 'a long passphrase', queuedBytes: 188 },
    ...{ push: told('push'), gap: told('gap'), end: told('end'), refuse: told('refuse') },
    open: (it) => (encoder = it),
  }
  const decision = await createSrtAdmission(async () => admitted)(REQUEST, signal)
  if ('reject' in decision) throw new Error('rejected')
  const { sink, passphrase, onRefused } = decision
  t.equal(passphrase, 'a long passphrase')
  const stats = () => ({ pktRcvBuf: 10 })
  sink.open({ lastReceivedUs: 7, stats } as unknown as SrtConnection)
  t.match(encoder, { program: 2, lastPacketUs: 7 })
  t.equal(encoder?.queuedBytes, 10 * 1456 + 188, 'behind a missing packet, and in a burst')
  const payload = Buffer.alloc(188)
  sink.push(payload)
  sink.gap(3)
  for (const reason of ['shutdown', 'timeout', 'closed'] as const) sink.end(reason)
  const wrong = new MillraceError('PASSPHRASE_WRONG')
  onRefused?.(wrong)
  t.strictSame(calls, [
    ['push', payload],
    ['gap', 3],
    ['end', 'shutdown'],
    ['end', 'timeout'],
    ['end', 'stopped'],
    ['refuse', wrong],
  ])
})
