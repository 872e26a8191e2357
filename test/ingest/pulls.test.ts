/**
 * Sources that are called, in simulated time: a stand-in for the SRT listener, and all else as the service has it.
 */
import t from 'tap'
import { MillraceError } from '../../src/errors.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { createAdmission } from '../../src/ingest/admission.ts'
import { Pulls } from '../../src/ingest/pulls.ts'
import { parseSrtUrl, type SrtUrl } from '../../src/srt/io/srt-url.ts'
import type { CloseReason, PayloadSink, SrtConnection } from '../../src/srt/types.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { StreamPolicy } from '../../src/stream/live-stream-options.ts'
import { CLIP, ClipEncoder } from '../support/clip-encoder.ts'
import { LoopedClip } from '../../src/pace/looped-clip.ts'

const URL_WITH_SECRETS =
  'srt://camera.example:9000?streamid=SECRET&passphrase=SECRETSECRET&latency=400'
const STEP_US = 50_000

interface Call {
  readonly target: SrtUrl
  readonly sink: PayloadSink
  readonly options: { readonly latencyMs: number; readonly idleTimeoutMs?: number }
  connect(): void
  refuse(error: Error): void
  /** The peer ends the connection, or it falls silent. */
  end(reason: CloseReason): void
  /** Whether the clip is sent. */
  isSending: boolean
  readonly isOpen: boolean
}

const settled = () => new Promise(setImmediate)

function setUp({ maxPublishers = 10 } = {}) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => 1_700_000_000_000 + nowUs / 1000 }
  const calls: (Call & { step(): void })[] = []
  const admission = createAdmission({
    streams: {
      find: () => undefined,
      admit: () => {
        throw new Error('no encoder calls')
      },
      checkKey: () => undefined,
    },
    streamOfPort: () => undefined,
    readJwtSecrets: () => ['secret'],
    maxPublishers,
    isOverloaded: () => false,
    clock,
    // Time passes in `run` alone.
    sleep: settled,
    onRejected: (remote, error) => events.push(`rejected ${remote}: ${error.code}`),
  })
  const pulls = new Pulls({
    admission,
    parseUrl: parseSrtUrl,
    call: (target, { sink, ...options }) =>
      new Promise((resolve, reject) => {
        calls.push(listenerOf({ target, sink, options, clock, resolve, reject }))
      }),
    latencyMs: 120,
    defer: (act) => act(),
    clock,
    random: () => 0,
  })
  const events: string[] = []
  const createStream = (id: string, policy: StreamPolicy = {}) => {
    const stream = new LiveStream(id, {
      clock,
      cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
      ...{ segmentSec: 1, maxSegmentSec: 10, playlistSegments: 5 },
      ...{ lingerSec: 60, reconnectGraceSec: 120, epoch: 'e' },
    })
    stream.renewKey(clock.wallMs() + 7_200_000)
    stream.on('publish', (encoder) => events.push(`publish ${encoder.report().remote}`))
    stream.on('interrupted', ({ reason }) => events.push(`interrupted: ${reason}`))
    stream.on('warning', ({ code, message }) => events.push(`${code}: ${message}`))
    stream.on('end', ({ reason }) => events.push(`end: ${reason}`))
    pulls.follow(stream)
    stream.configure({ policy })
    return stream
  }
  const studio = createStream('studio')
  const encoders = new Set<ClipEncoder>()
  return {
    ...{ clock, pulls, calls, events, studio, createStream },
    connect(source: 'main' | 'backup') {
      const encoder = new ClipEncoder(source, nowUs)
      encoder.publication = studio.publish(encoder)
      encoders.add(encoder)
      return encoder
    },
    report: () => pulls.reportOf(studio),
    async run(sec: number) {
      for (const endUs = nowUs + sec * 1e6; nowUs < endUs;) {
        nowUs += STEP_US
        for (const call of calls) call.step()
        for (const encoder of encoders) encoder.step(nowUs)
        studio.tick()
        pulls.tick()
        await settled()
      }
    },
  }
}

interface ListenerOptions extends Pick<Call, 'target' | 'sink' | 'options'> {
  readonly clock: { nowUs(): number }
  readonly resolve: (connection: { closed: Promise<CloseReason>; close(): Promise<void> }) => void
  readonly reject: (error: Error) => void
}

/** An SRT listener that sends the clip to its caller. */
function listenerOf({ target, sink, options, clock, resolve, reject }: ListenerOptions) {
  let [isOpen, openedUs, sentUs] = [false, 0, 0]
  let settle!: (reason: CloseReason) => void
  const closed = new Promise<CloseReason>((done) => (settle = done))
  const clip = new LoopedClip(CLIP)
  const end = (reason: CloseReason) => {
    if (!isOpen) return
    isOpen = false
    settle(reason)
    sink.end(reason)
  }
  const connection = {
    ...{ remoteAddress: '192.0.2.7', remotePort: target.port, peerVersion: '1.5.1' },
    get lastReceivedUs() {
      return sentUs
    },
    get lastDataUs() {
      return sentUs
    },
    stats: () => ({ pktRcvBuf: 0, msRcvTsbPdDelay: options.latencyMs, mbpsRecvRate: 1 }),
    close: () => end('closed'),
  } as unknown as SrtConnection
  const call = {
    ...{ target, sink, options, isSending: true },
    get isOpen() {
      return isOpen
    },
    connect: () => {
      isOpen = true
      openedUs = sentUs = clock.nowUs()
      resolve({ closed, close: async () => end('closed') })
      sink.open(connection)
    },
    refuse: reject,
    end,
    step: () => {
      const datagrams = isOpen && call.isSending ? clip.takeUntil(clock.nowUs() - openedUs) : []
      if (datagrams.length > 0) sentUs = clock.nowUs()
      for (const { payload } of datagrams) sink.push(payload)
    },
  }
  return call
}

t.test('calls the source of a stream, which becomes its main encoder', async (t) => {
  const { pulls, calls, events, studio, run, report } = setUp()
  await run(1)
  t.strictSame(calls, [], 'no pull_url')
  t.equal(report(), undefined)
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  t.match(report(), { remote: 'camera.example:9000', state: 'WAITING', calls: 0 })
  await run(0.1)
  t.match(report(), { state: 'CALLING', calls: 1 })
  t.match(calls[0], {
    target: { host: 'camera.example', streamId: 'SECRET', passphrase: 'SECRETSECRET' },
    options: { latencyMs: 120, idleTimeoutMs: 2000 },
  })
  calls[0]!.connect()
  await run(5)
  t.match(report(), { state: 'CONNECTED', calls: 1, error: undefined })
  t.equal(studio.onAir, 'main')
  t.equal(studio.live, true)
  t.strictSame(events, ['publish 192.0.2.7:9000'])
  t.strictSame(pulls.stats, { states: { CALLING: 0, CONNECTED: 1, WAITING: 0 }, failures: {} })
  const told = JSON.stringify([studio.report(), report(), pulls.stats, events])
  t.notMatch(told, /SECRET/)
})

t.test('calls again when the source is lost, and the playlist goes on', async (t) => {
  const { calls, events, studio, run, report } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS, policy: { latencyMs: 900 } })
  await run(0.1)
  t.equal(calls[0]!.options.latencyMs, 900, 'of the stream')
  calls[0]!.connect()
  await run(5)
  events.length = 0
  calls[0]!.end('timeout')
  t.strictSame(events, ['interrupted: timeout'])
  await run(0.9)
  t.match(report(), { state: 'WAITING', error: 'the peer has fallen silent' })
  await run(0.2)
  t.equal(calls.length, 2, 'after 1 s')
  calls[1]!.connect()
  await run(3)
  t.equal(studio.live, true)
  t.strictSame(events, ['interrupted: timeout', 'publish 192.0.2.7:9000'])
  t.equal(studio.report().totals.publishers, 2)
})

t.test('warns of calls that fail, until the source is there', async (t) => {
  const { pulls, calls, events, studio, run, report } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  const failures = [
    [new MillraceError('SRT_TIMEOUT', { message: 'no SRT peer answered' }), 'not reached'],
    [new MillraceError('SRT_REJECTED', { message: 'refused: 1010' }), 'refused'],
    [new MillraceError('ADDRESS_FORBIDDEN', { message: 'beyond it' }), 'PULL_ALLOW forbids it'],
  ] as const
  for (const [error, reason] of failures) {
    await run(1.1)
    calls.at(-1)!.refuse(error)
    await run(0.1)
    t.match(report(), { state: 'WAITING', error: error.message })
    t.match(studio.report().warnings, [
      { code: 'PULL_FAILING', message: `The call to camera.example:9000 fails: ${reason}.` },
    ])
  }
  t.equal(events.length, 1, 'one event, until it is over')
  t.strictSame(pulls.stats.failures, { SRT_TIMEOUT: 1, SRT_REJECTED: 1, ADDRESS_FORBIDDEN: 1 })
  await run(1.1)
  calls.at(-1)!.connect()
  await run(1)
  t.strictSame(studio.report().warnings, [])
})

t.test('a source that answers and sends nothing is interrupted as any encoder is', async (t) => {
  const { calls, events, studio, run, report } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(0.1)
  calls[0]!.connect()
  await run(1)
  calls[0]!.isSending = false
  events.length = 0
  await run(12)
  t.match(report(), { state: 'CONNECTED' })
  t.equal(studio.status, 'INTERRUPTED')
  t.match(events, [/^NO_MEDIA/, 'interrupted: no-media'])
})

t.test('does not call while an encoder publishes as the main one', async (t) => {
  const { pulls, calls, events, studio, connect, run, report } = setUp()
  const encoder = connect('main')
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(10)
  t.strictSame(calls, [])
  t.match(report(), { state: 'WAITING', error: /another encoder is publishing this stream/ })
  t.ok(pulls.stats.failures['STREAM_BUSY']! > 0)
  t.notMatch(events.join(), /rejected|PULL_FAILING/, 'nothing is wrong')
  encoder.isPaused = true
  await run(4)
  t.equal(calls.length, 1, 'it takes over from one that is silent')
  calls[0]!.connect()
  await run(1)
  t.equal(encoder.closed, true)
  t.equal(studio.encoder?.report().remote, '192.0.2.7:9000')
})

t.test('is on air beside a backup encoder, which fills in', async (t) => {
  const { calls, studio, connect, run } = setUp()
  connect('backup')
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(3)
  t.equal(studio.onAir, 'backup')
  calls.at(-1)!.connect()
  await run(12)
  t.equal(studio.onAir, 'main', 'after the time to fail back')
  calls.at(-1)!.isSending = false
  await run(2)
  t.equal(studio.onAir, 'backup')
})

t.test('kick disconnects the source, and a ban keeps it away', async (t) => {
  const { clock, calls, studio, run, report } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(0.1)
  calls[0]!.connect()
  await run(2)
  studio.configure({ policy: { bannedUntilUs: clock.nowUs() + 5e6 } })
  studio.disconnect('kicked')
  t.equal(calls[0]!.isOpen, false)
  await run(4)
  t.equal(calls.length, 1)
  t.match(report(), { state: 'WAITING', error: /banned/ })
  await run(5)
  t.equal(calls.length, 2)
})

t.test('another URL, and none, end the connection; the stream waits', async (t) => {
  const { calls, events, studio, run, report } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(0.1)
  calls[0]!.connect()
  await run(2)
  studio.configure({ policy: { latencyMs: 500 } })
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  t.equal(calls[0]!.isOpen, true, 'the same URL changes nothing')
  events.length = 0
  studio.configure({ pullUrl: 'srt://[2001:db8::1]:7000' })
  t.equal(calls[0]!.isOpen, false)
  t.strictSame(events, ['interrupted: shutdown'])
  t.match(report(), { remote: '[2001:db8::1]:7000', calls: 0 })
  await run(0.1)
  t.match(calls[1]!.target, { host: '2001:db8::1', port: 7000 })
  calls[1]!.connect()
  await run(2)
  studio.configure({ pullUrl: undefined })
  t.equal(calls[1]!.isOpen, false)
  t.equal(report(), undefined)
  await run(60)
  t.equal(calls.length, 2)
})

t.test('waits for the source until the key of the stream expires', async (t) => {
  const { events, studio, calls, run } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(0.1)
  calls[0]!.connect()
  await run(2)
  calls[0]!.end('shutdown')
  await run(150)
  t.equal(studio.status, 'INTERRUPTED', 'after the reconnect grace of 120 s')
  t.notMatch(events.join(), /end:/)
})

t.test('a stream that stops, or goes to another node, is called no more', async (t) => {
  for (const end of [
    (stream: LiveStream) => stream.stop('api'),
    (stream: LiveStream) => stream.leave(),
  ]) {
    const { calls, studio, pulls, run } = setUp()
    studio.configure({ pullUrl: URL_WITH_SECRETS })
    await run(0.1)
    calls[0]!.connect()
    await run(1)
    end(studio)
    t.equal(calls[0]!.isOpen, false)
    await run(60)
    t.equal(calls.length, 1)
    t.strictSame(pulls.stats.states, { CALLING: 0, CONNECTED: 0, WAITING: 0 })
  }
})

t.test('counts among MAX_PUBLISHERS, while it is connected', async (t) => {
  const { calls, studio, createStream, pulls, run } = setUp({ maxPublishers: 1 })
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(0.1)
  calls[0]!.connect()
  await run(1)
  const other = createStream('other')
  other.configure({ pullUrl: 'srt://other.example:9000' })
  await run(3)
  t.equal(calls.length, 1)
  t.match(pulls.reportOf(other), { state: 'WAITING', error: /MAX_PUBLISHERS/ })
  calls[0]!.end('shutdown')
  studio.configure({ pullUrl: undefined })
  await run(5)
  t.equal(calls.length, 2)
  t.equal(calls[1]!.target.host, 'other.example')
})

t.test('close ends calls and connections', async (t) => {
  const { calls, studio, pulls, run } = setUp()
  studio.configure({ pullUrl: URL_WITH_SECRETS })
  await run(0.1)
  calls[0]!.connect()
  await run(1)
  await pulls.close()
  t.equal(calls[0]!.isOpen, false)
  await run(60)
  t.equal(calls.length, 1)
})
