import t from 'tap'
import { issueStreamKey } from '../../src/auth/stream-key.ts'
import { MillraceError } from '../../src/errors.ts'
import { createAdmission, type AcceptedPublisher } from '../../src/ingest/admission.ts'
import { createSrtAdmission } from '../../src/ingest/srt-admission.ts'
import { SrtError } from '../../src/srt/srt-error.ts'
import type { SrtConnection } from '../../src/srt/types.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder, Publication } from '../../src/stream/publication.ts'

const REQUEST = {
  remoteAddress: '192.0.2.1',
  remotePort: 5000,
  localPort: 10_080,
  peerVersion: '1.5.1',
  streamId: 'mode=publish,rid=studio,token=secret',
}
const { signal } = new AbortController()

const defer = () => undefined
const always = (secrets: readonly string[]) => () => secrets

t.test('rejects with the code of the refusal, and reports it without the key', async (t) => {
  const reported: unknown[][] = []
  const studio = { id: 'studio' } as LiveStream
  const { admit } = createAdmission({
    isOverloaded: () => false,
    streams: {
      find: (id) => (id === 'studio' ? studio : undefined),
      admit: () => studio,
      checkKey: () => undefined,
    },
    streamOfPort: () => undefined,
    readJwtSecrets: always(['another secret']),
    maxPublishers: 1,
    clock: { nowUs: () => 0, wallMs: () => 0 },
    sleep: () => Promise.reject(new Error('nothing to wait for')),
    onRejected: (...refusal) => void reported.push(refusal),
  })
  t.strictSame(await createSrtAdmission(admit, defer)(REQUEST, signal), { reject: 1010 })
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
    encoderOf: () => undefined,
    policy: {},
  } as unknown as LiveStream
  const { admit } = createAdmission({
    isOverloaded: () => true,
    streams: { find: () => studio, admit: () => studio, checkKey: () => undefined },
    streamOfPort: () => undefined,
    readJwtSecrets: always([secret]),
    maxPublishers: 1,
    clock: { nowUs: () => 0, wallMs: () => now.getTime() },
    sleep: () => Promise.resolve(),
    onRejected: () => undefined,
  })
  const decision = await createSrtAdmission(admit, defer)(
    { ...REQUEST, streamId: streamKey },
    signal,
  )
  t.strictSame(decision, { reject: 2402 })
  t.strictSame(renewals, [now.getTime() + 7200 * 1000])
})

t.test('refuses an encoder whose key is revoked while it waits for another', async (t) => {
  const secret = 'a secret of thirty-two characters'
  const now = new Date(1_700_000_000_000)
  const { streamKey: streamId } = await issueStreamKey({ streamId: 'studio', secret, now })
  const calls: unknown[] = []
  let nowUs = 0
  let isRevoked = false
  const studio = {
    ...{ id: 'studio', status: 'STREAMING', policy: {} },
    encoderOf: () => ({ lastPacketUs: 0 }),
    publish: () => void calls.push('publish'),
  } as unknown as LiveStream
  const { admit } = createAdmission({
    isOverloaded: () => false,
    streams: {
      find: () => studio,
      admit: () => studio,
      checkKey: () => {
        if (isRevoked) throw new MillraceError('STREAM_KEY_REVOKED')
      },
    },
    streamOfPort: () => undefined,
    readJwtSecrets: always([secret]),
    maxPublishers: 1,
    clock: { nowUs: () => nowUs, wallMs: () => now.getTime() },
    sleep: async () => {
      nowUs += 2_000_000
      isRevoked = true
    },
    onRejected: (_remote, { code, rejectCode }) => void calls.push([code, rejectCode]),
  })
  const decision = await createSrtAdmission(admit, defer)({ ...REQUEST, streamId }, signal)
  if ('reject' in decision) throw new Error('rejected')
  t.ok(isRevoked, 'it has waited')
  const close = async () => void calls.push('close')
  decision.sink.open({ close } as unknown as SrtConnection)
  t.strictSame(calls, [['STREAM_KEY_REVOKED', 1010], 'close'])
})

t.test('throws programmer errors', async (t) => {
  const accept = createSrtAdmission(() => Promise.reject(new TypeError('a bug')), defer)
  await t.rejects(accept(REQUEST, signal), TypeError)
})

t.test('hands the encoder, its payloads and its end to the stream', async (t) => {
  const calls: unknown[][] = []
  const told = (name: string) => (argument?: unknown) => void calls.push([name, argument])
  let encoder: Encoder | undefined
  const publication = { push: told('push'), gap: told('gap'), end: told('end') }
  const publisher: AcceptedPublisher = {
    ...{ source: 'backup', program: 2, passphrase: 'a long passphrase' },
    ...{ disconnected: told('disconnected'), refuse: told('refuse') },
    connect: (it) => {
      encoder = it
      return publication as unknown as Publication
    },
  }
  const accept = createSrtAdmission(async () => publisher, defer)
  const open = async () => {
    const decision = await accept(REQUEST, signal)
    if ('reject' in decision) throw new Error('rejected')
    decision.sink.open({
      ...{ lastReceivedUs: 7, stats: () => ({ pktRcvBuf: 10 }) },
    } as unknown as SrtConnection)
    return decision
  }
  const payload = Buffer.alloc(188)
  const { sink, passphrase, onRefused } = await open()
  t.equal(passphrase, 'a long passphrase')
  t.match(encoder, { program: 2, lastPacketUs: 7 })
  sink.push(payload)
  sink.gap(3)
  onRefused?.(new SrtError('PASSPHRASE_WRONG', 'as SRT says it'))
  t.strictSame(calls.splice(0), [
    ['push', payload],
    ['gap', 3],
    ['refuse', new MillraceError('PASSPHRASE_WRONG')],
  ])
  // A turn passes 64 payloads on.
  for (let number = 1; number < 65; number++) sink.push(payload)
  t.equal(encoder?.queuedBytes, 10 * 1456 + 188, 'behind a missing packet, and in a burst')
  const ends = { shutdown: 'shutdown', timeout: 'timeout', closed: 'stopped' }
  for (const reason of ['shutdown', 'timeout', 'closed'] as const) {
    const other = await open()
    calls.length = 0
    other.sink.end(reason)
    t.strictSame(calls, [
      ['disconnected', undefined],
      ['end', ends[reason]],
    ])
  }
})
