/**
 * Pushes: which listeners are called, and how their connections end.
 */
import t from 'tap'
import { Pushes } from '../../src/egress/pushes.ts'
import { MillraceError } from '../../src/errors.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { parseSrtUrl } from '../../src/srt/io/srt-url.ts'
import type { CloseReason, PayloadSink, SrtConnection } from '../../src/srt/types.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'

const ONE = 'srt://one.example:9000?streamid=SECRET&passphrase=SECRETSECRET'
const OTHER = 'srt://other.example:9000'

const settled = () => new Promise(setImmediate)

function setUp() {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => 1_700_000_000_000 + nowUs / 1000 }
  const events: string[] = []
  const state = { isAway: false }
  const pushes = new Pushes({
    parseUrl: parseSrtUrl,
    call: async ({ host }, { sink }) => {
      events.push(`call ${host}`)
      if (state.isAway) throw new MillraceError('SRT_TIMEOUT')
      return listenerOf(host, sink, events)
    },
    latencyMs: 120,
    isOverloaded: () => false,
    clock,
    random: () => 0,
  })
  const stream = new LiveStream('studio', {
    clock,
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    ...{ segmentSec: 1, maxSegmentSec: 10, playlistSegments: 5 },
    ...{ lingerSec: 60, reconnectGraceSec: 120, epoch: 'e' },
  })
  stream.on('push', ({ remote, lost }) =>
    events.push(lost === undefined ? `connected ${remote}` : `lost ${remote}: ${lost}`),
  )
  stream.on('warning', ({ code }) => events.push(code))
  stream.renewKey(clock.wallMs() + 7_200_000)
  pushes.follow(stream)
  const run = async (sec: number) => {
    for (const endUs = nowUs + sec * 1e6; nowUs < endUs; nowUs += 250_000) {
      pushes.tick()
      await settled()
    }
  }
  return { pushes, stream, state, run, take: () => events.splice(0) }
}

/** A listener that takes its time: its connection ends when it is told to finish at once, or by `end`. */
function listenerOf(host: string, sink: PayloadSink, events: string[]) {
  let settle!: (reason: CloseReason) => void
  const closed = new Promise<CloseReason>((resolve) => (settle = resolve))
  const end = () => {
    settle('closed')
    sink.end('closed')
  }
  sink.open({
    ...{ remoteAddress: '192.0.2.7', remotePort: 9000, peerVersion: '1.5.1' },
    finish: (limitUs: number) => {
      events.push(`finish ${host} within ${limitUs / 1e6} s`)
      if (limitUs < 10e6) end()
    },
  } as unknown as SrtConnection)
  return { closed, close: () => closed.then(() => undefined) }
}

t.test('a push that another one has replaced finishes, and `close` waits for it', async (t) => {
  const { pushes, stream, run, take } = setUp()
  stream.configure({ pushUrls: [ONE] })
  await run(0.25)
  t.strictSame(take(), ['call one.example', 'connected one.example:9000'])
  stream.configure({ pushUrls: [OTHER] })
  await run(0.25)
  t.strictSame(take(), [
    'finish one.example within 10 s',
    'call other.example',
    'connected other.example:9000',
  ])
  await pushes.close(6000)
  t.match(take().toSorted(), [
    'finish one.example within 6 s',
    'finish other.example within 6 s',
    'lost one.example:9000: closed',
    'lost other.example:9000: closed',
  ])
  await run(60)
  t.strictSame(take(), [])
})

t.test('a thousand replacements leave nothing behind', async (t) => {
  const { pushes, stream, run, take } = setUp()
  for (let i = 0; i < 1000; i++)
    stream.configure({ pushUrls: [`srt://${i}.example:9000`, `srt://${i}.example:9001`] })
  await run(1)
  t.strictSame(take().filter((event) => event.startsWith('call')).length, 2, 'the last are called')
  t.strictSame(pushes.stats.states, { CALLING: 0, CONNECTED: 2, WAITING: 0 })
  stream.stop('api')
  await run(1)
  t.strictSame(pushes.reportOf(stream), [])
  t.strictSame(pushes.stats.states, { CALLING: 0, CONNECTED: 0, WAITING: 0 })
  await pushes.close(0)
})

t.test('warns of a listener that is away, until it is there', async (t) => {
  const { stream, state, run, take } = setUp()
  state.isAway = true
  stream.configure({ pushUrls: [ONE] })
  await run(0.25)
  t.strictSame(take(), ['call one.example', 'PUSH_FAILING'])
  state.isAway = false
  await run(1.5)
  t.strictSame(take(), ['call one.example', 'connected one.example:9000'])
  t.strictSame(stream.report().warnings, [])
})

t.test('a stream that stops tells of no lost listener after its end', async (t) => {
  const { pushes, stream, run, take } = setUp()
  stream.configure({ pushUrls: [ONE] })
  await run(0.25)
  take()
  stream.on('end', () => t.strictSame(take(), ['finish one.example within 10 s']))
  stream.stop('api')
  await pushes.close(0)
  t.strictSame(take(), ['finish one.example within 0 s'])
})
