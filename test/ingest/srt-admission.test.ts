import { readFileSync } from 'node:fs'
import t from 'tap'
import { issueStreamKey } from '../../src/auth/stream-key.ts'
import { MillraceError } from '../../src/errors.ts'
import {
  createAdmission,
  type AcceptedPublisher,
  type AdmissionOptions,
  type AdmissionStreams,
} from '../../src/ingest/admission.ts'
import { createSrtAdmission } from '../../src/ingest/srt-admission.ts'
import { Endpoint } from '../../src/srt/connection/endpoint.ts'
import type { Attempt } from '../../src/srt/handshake/attempt.ts'
import { HandshakeInitiator } from '../../src/srt/handshake/handshake-initiator.ts'
import { HandshakeLimits } from '../../src/srt/handshake/source-limiter.ts'
import { SrtError } from '../../src/srt/srt-error.ts'
import type { SrtConnection } from '../../src/srt/types.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder, Publication } from '../../src/stream/publication.ts'
import { ENDPOINT_OPTIONS } from '../srt/endpoint-options.ts'
import { wholeDatagram } from '../srt/whole-datagram.ts'
import { createRandom } from '../support/random.ts'

const REQUEST = {
  remoteAddress: '192.0.2.1',
  remotePort: 5000,
  localPort: 10_080,
  peerVersion: '1.5.1',
  verifyEncryption: async () => undefined,
  streamId: 'mode=publish,rid=studio,token=secret',
}
const { signal } = new AbortController()

/** Length of a simulated attack: bursts are over 2 s before its end. */
const GUESS_SEC = 5

const defer = () => undefined
const always = (secrets: readonly string[]) => () => secrets

t.test('rejects with the code of the refusal, and reports it without the key', async (t) => {
  const reported: unknown[][] = []
  const studio = { id: 'studio' } as LiveStream
  const accept = createAccept({
    streams: streamsOf(studio, { find: (id) => (id === 'studio' ? studio : undefined) }),
    readJwtSecrets: always(['another secret']),
    onRejected: (...refusal) => void reported.push(refusal),
  })
  t.strictSame(await accept(REQUEST, signal), { reject: 1010 })
  t.match(reported, [['192.0.2.1:5000', { code: 'STREAM_KEY_INVALID' }, studio]])
  t.notMatch(JSON.stringify(reported) + String(reported[0]![1]), /token=|secret/)
})

t.test('an encoder of another node is reported only where that does not take it', async (t) => {
  const reported: unknown[][] = []
  const moves: (string | undefined)[] = []
  const ofStudio = { streamId: 'studio', secret: 'secret', now: new Date(0) }
  const { streamKey: streamId } = await issueStreamKey(ofStudio)
  const admit = () => {
    throw new MillraceError('STREAM_BUSY', { takenBy: 'other' })
  }
  const accept = createAccept({
    streams: { find: () => undefined, admit, checkKey: () => undefined },
    readJwtSecrets: always(['secret']),
    onRejected: (...refusal) => void reported.push(refusal),
  })
  const call = (hasMoved?: boolean) => {
    const moveAway = async ({ takenBy }: MillraceError) => {
      moves.push(takenBy)
      return hasMoved === true
    }
    const request = { ...REQUEST, streamId, ...(hasMoved !== undefined && { moveAway }) }
    return accept(request, signal)
  }
  await call(true)
  t.strictSame(moves.splice(0), ['other'])
  t.strictSame(reported, [])
  t.strictSame(await call(false), { reject: 2409 })
  t.strictSame(moves, ['other'])
  t.match(reported, [['192.0.2.1:5000', { code: 'STREAM_BUSY' }, undefined]])
  await call()
  t.equal(reported.length, 2)
})

t.test('a short key is guessed no faster than a long one, as docs/security.md says', async (t) => {
  const [key, other] = await Promise.all(
    ['a', 'b'].map((letter) =>
      issueStreamKey({ streamId: 'studio', secret: letter.repeat(32), now: new Date(0) }),
    ),
  )
  const random = createRandom(1)
  const guess = (bytes: number) => random.bytes(bytes).toString('base64url')
  const signed = key!.streamKey.slice(0, key!.streamKey.lastIndexOf('.'))
  const kinds = { short: () => `studio-${guess(16)}`, long: () => `${signed}.${guess(32)}` }
  const perSec = 500
  for (const [kind, draw] of Object.entries(kinds)) {
    const ofAddress = await guessKeys(draw, 1)
    t.strictSame(ofAddress, { total: 150 + 20 * GUESS_SEC, perSec: 20 }, `${kind}, one address`)
    const ofAll = await guessKeys(draw, 100)
    t.strictSame(ofAll, { total: 1000 + perSec * GUESS_SEC, perSec }, `${kind}, 100 networks`)
    t.strictSame(await guessKeys(draw, 1, 8), ofAddress, `${kind}, one address at 8 ports`)
    t.strictSame(await guessKeys(draw, 100, 8), ofAll, `${kind}, 100 networks at 8 ports`)
  }
  const [bytes, otherBytes] = [key!, other!].map(({ shortStreamKey }) =>
    Buffer.from(shortStreamKey.slice('studio-'.length), 'base64url'),
  )
  // All else is the same with another secret.
  const macBits =
    8 * bytes!.subarray(bytes!.findIndex((byte, at) => byte !== otherBytes![at])).length
  const years = 2 ** (macBits - 1) / perSec / (365.25 * 86_400)
  const page = readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8')
  const row = /^\| guesses of a short key .*$/m.exec(page)?.[0]
  t.match(row, `${macBits} bits`)
  t.match(row, `${perSec} conclusions/s`)
  t.match(row, `${Math.round(years / 1e6)} million years`)
})

/**
 * Has callers of so many networks guess 1,000 keys a second at the ports of a listener, each for a stream that exists.
 *
 * @returns number of guesses that were verified, and of those in a second of the last two
 */
async function guessKeys(draw: () => string, networks: number, ports = 1) {
  let [nowUs, total, late] = [0, 0, 0]
  const clock = { nowUs: () => nowUs, wallMs: () => 0 }
  const studio = { id: 'studio' } as LiveStream
  const accept = createAccept({
    streams: streamsOf(studio),
    readJwtSecrets: always(['a'.repeat(32)]),
    clock,
    onRejected: (_remote, { code }) => {
      if (code !== 'STREAM_KEY_INVALID') throw new Error(code)
      total++
      if (nowUs > (GUESS_SEC - 2) * 1e6) late++
    },
  })
  const [responses, attempts]: [Buffer[], Attempt[]] = [[], []]
  const limits = new HandshakeLimits()
  const createEndpoint = (_: unknown, port: number) =>
    new Endpoint({
      ...{ ...ENDPOINT_OPTIONS, nowUs, random: createRandom(2 + port).bytes, limits },
      host: {
        transmit: (datagram) => responses.push(wholeDatagram(datagram)),
        request: (attempt) => attempts.push(attempt),
        expire: () => undefined,
        fail: (error) => {
          throw error
        },
      },
    })
  const endpoints = Array.from({ length: ports }, createEndpoint)
  for (let number = 0; number <= GUESS_SEC * 1000; number++) {
    nowUs = number * 1000
    const address = `10.0.${number % networks}.1`
    const endpoint = endpoints[number % ports]!
    const guesser = new HandshakeInitiator({
      ...{ remoteAddress: '192.0.2.2', remotePort: 10_080, socketId: number + 1 },
      ...{ latencyMs: 120, peerLatencyMs: 120, receiveWindowPackets: 8192 },
      ...{ initialSequenceNumber: 0, startTimestampUs: 0, connectTimeoutUs: 3_000_000 },
      streamId: draw(),
      host: {
        transmit: (datagram) =>
          endpoint.handleDatagram(wholeDatagram(datagram), 5000, address, nowUs),
        accepted: () => undefined,
        refused: () => undefined,
      },
    })
    guesser.start(nowUs)
    for (const response of responses.splice(0)) guesser.handleDatagram(response, nowUs)
    for (const attempt of attempts.splice(0)) {
      const request = { ...attempt, localPort: 10_080, verifyEncryption: async () => undefined }
      const decision = await accept(request, signal)
      if ('reject' in decision) endpoint.decide(attempt, decision, nowUs)
    }
    responses.splice(0)
  }
  return { total, perSec: late / 2 }
}

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
  const accept = createAccept({
    streams: streamsOf(studio),
    isOverloaded: () => true,
    readJwtSecrets: always([secret]),
    clock: { nowUs: () => 0, wallMs: () => now.getTime() },
  })
  t.strictSame(await accept({ ...REQUEST, streamId: streamKey }, signal), { reject: 2402 })
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
  const checkKey = () => {
    if (isRevoked) throw new MillraceError('STREAM_KEY_REVOKED')
  }
  const accept = createAccept({
    streams: streamsOf(studio, { checkKey }),
    readJwtSecrets: always([secret]),
    clock: { nowUs: () => nowUs, wallMs: () => now.getTime() },
    sleep: async () => {
      nowUs += 2_000_000
      isRevoked = true
    },
    onRejected: (_remote, { code, rejectCode }) => void calls.push([code, rejectCode]),
  })
  const decision = await accept({ ...REQUEST, streamId }, signal)
  if ('reject' in decision) throw new Error('rejected')
  t.ok(isRevoked, 'it has waited')
  const close = async () => void calls.push('close')
  decision.sink.open({ close } as unknown as SrtConnection)
  t.strictSame(calls, [['STREAM_KEY_REVOKED', 1010], 'close'])
})

t.test(
  'another line of the encoder on air waits for nobody, but needs key, passphrase and address',
  async (t) => {
    const secret = 'a secret of thirty-two characters'
    const now = new Date(1_700_000_000_000)
    const { streamKey: streamId } = await issueStreamKey({ streamId: 'studio', secret, now })
    const studio = {
      ...{ id: 'studio', status: 'STREAMING', policy: { allowFrom: ['192.0.2.0/24'] } },
      encoderOf: () => ({ lastPacketUs: 0, lastDataUs: 0 }),
    } as unknown as LiveStream
    const accept = createAccept({
      streams: streamsOf(studio),
      streamOfPort: (port) => (port === 11_000 ? 'studio' : undefined),
      readJwtSecrets: always([secret]),
      clock: { nowUs: () => 0, wallMs: () => now.getTime() },
    })
    const member = { ...REQUEST, streamId, isJoining: true }
    t.ok('sink' in (await accept(member, signal)))
    const unkeyed = { ...member, streamId: '', localPort: 11_000 }
    t.ok('sink' in (await accept(unkeyed, signal)), 'nor without a stream id, on its own port')
    t.strictSame(await accept({ ...member, remoteAddress: '198.51.100.1' }, signal), {
      reject: 2403,
    })
    t.strictSame(await accept({ ...member, streamId: `${streamId}x` }, signal), { reject: 1010 })
    const other = await accept({ ...member, isJoining: false }, signal)
    t.strictSame(other, { reject: 2409 }, 'it has waited')
    const locked = new SrtError('PASSPHRASE_WRONG', 'wrong', { rejectCode: 1010 })
    const stranger = { ...member, verifyEncryption: async () => locked }
    for (let line = 0; line < 300; line++)
      t.strictSame(await accept(stranger, signal), { reject: 1010 })
    for (let line = 3; line <= 240; line++) await accept(member, signal)
    t.strictSame(await accept(member, signal), { reject: 2402 }, 'strangers did not count')
  },
)

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

/** Streams of which each is `stream`. */
function streamsOf(stream: LiveStream, others: Partial<AdmissionStreams> = {}): AdmissionStreams {
  return { find: () => stream, admit: () => stream, checkKey: () => undefined, ...others }
}

/** At most one publisher; by default there is nothing to wait for. @returns hook of a listener */
function createAccept(
  options: Pick<AdmissionOptions, 'streams' | 'readJwtSecrets'> & Partial<AdmissionOptions>,
) {
  const { admit } = createAdmission({
    isOverloaded: () => false,
    streamOfPort: () => undefined,
    maxPublishers: 1,
    clock: { nowUs: () => 0, wallMs: () => 0 },
    sleep: () => Promise.reject(new Error('nothing to wait for')),
    onRejected: () => undefined,
    ...options,
  })
  return createSrtAdmission(admit, defer)
}
