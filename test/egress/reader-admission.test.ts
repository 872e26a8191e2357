/**
 * Admission of readers: what changes between the decision and the connection, and streams of other nodes.
 */
import t, { type Test } from 'tap'
import { formatPlayRequest, issuePlayToken } from '../../src/auth/srt-play-token.ts'
import { createReaderAdmission, type ReadableStreams } from '../../src/egress/reader-admission.ts'
import { MillraceError } from '../../src/errors.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { SrtConnection } from '../../src/srt/types.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'

const clock = { nowUs: () => 0, wallMs: () => 1_700_000_000_000 }

t.test('a reader that connects when its stream has no room any more is rejected', async (t) => {
  const stream = new LiveStream('studio', {
    clock,
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    ...{ segmentSec: 1, maxSegmentSec: 10, playlistSegments: 5 },
    ...{ lingerSec: 60, reconnectGraceSec: 120, epoch: 'e' },
  })
  const { call, rejected } = setUp({ find: () => stream })
  const [first, second, third] = [await call('studio'), await call('studio'), await call('studio')]
  t.notOk(open(t, first), 'the share of a stream is 1 of 2')
  t.ok(open(t, second), 'closed')
  t.strictSame(rejected.splice(0), ['TOO_MANY_READERS'])
  t.equal(stream.readers, 1)
  stream.stop('api')
  t.ok(open(t, third), 'closed')
  t.strictSame(rejected, ['STREAM_NOT_FOUND'])
})

t.test('a stream of another node that is public needs no token', async (t) => {
  const { call, rejected } = setUp({
    find: () => undefined,
    locate: async (streamId) =>
      ['public', 'private'].includes(streamId)
        ? { url: 'http://other', policy: { playbackToken: streamId !== 'public' } }
        : undefined,
  })
  t.strictSame(await call('public'), { reject: 2409 })
  t.strictSame(await call('private'), { reject: 1010 })
  t.strictSame(await call('none'), { reject: 1010 })
  t.strictSame(rejected, ['NOT_OWNER', 'PLAYBACK_TOKEN_MISSING', 'PLAYBACK_TOKEN_MISSING'])
})

t.test('a reader of another node is reported only where that does not take it', async (t) => {
  const moves: (string | undefined)[] = []
  const { call, rejected } = setUp({
    find: () => undefined,
    locate: async () => ({
      url: 'http://other',
      policy: { playbackToken: false },
      takenBy: 'other',
    }),
  })
  const move =
    (hasMoved: boolean) =>
    async ({ takenBy }: MillraceError) => {
      moves.push(takenBy)
      return hasMoved
    }
  await call('studio', undefined, move(true))
  t.strictSame(moves.splice(0), ['other'])
  t.strictSame(rejected, [])
  t.strictSame(await call('studio', undefined, move(false)), { reject: 2409 })
  t.strictSame(moves, ['other'])
  t.strictSame(rejected, ['NOT_OWNER'])
  await call('studio')
  t.equal(rejected.length, 2)
})

t.test('Redis is not asked for a bad token, and its outage says nothing without one', async (t) => {
  const secret = 'p'.repeat(32)
  const located: string[] = []
  const { call, rejected } = setUp({
    find: () => undefined,
    locate: async (streamId) => {
      located.push(streamId)
      throw new MillraceError('REGISTRY_UNAVAILABLE')
    },
  })
  const tokenOf = (streamId: string, atSec: number) =>
    issuePlayToken(streamId, { secret, expiresAt: new Date(clock.wallMs() + atSec * 1000) })
  t.strictSame(await call('none'), { reject: 1010 })
  t.strictSame(rejected.splice(0), ['PLAYBACK_TOKEN_MISSING'])
  t.strictSame(located.splice(0), ['none'], 'it may be public')
  await call('forged', 'e30.e30.e30')
  await call('old', await tokenOf('old', -1))
  await call('another', await tokenOf('one', 60))
  t.strictSame(located, [])
  t.strictSame(rejected.splice(0), [
    'PLAYBACK_TOKEN_INVALID',
    'PLAYBACK_TOKEN_EXPIRED',
    'PLAYBACK_TOKEN_INVALID',
  ])
  await call('good', await tokenOf('good', 60))
  t.strictSame(located, ['good'])
  t.strictSame(rejected, ['REGISTRY_UNAVAILABLE'])
})

/** At most 2 readers; `PLAYBACK_SECRET` is set where streams are of other nodes. */
function setUp(streams: ReadableStreams) {
  const rejected: string[] = []
  const admit = createReaderAdmission({
    streams,
    readPlaybackSecrets: () => (streams.locate === undefined ? [] : ['p'.repeat(32)]),
    maxReaders: 2,
    isOverloaded: () => false,
    clock,
    onRejected: (_remote, { code }) => void rejected.push(code),
    onReader: () => {},
  })
  const call = (
    rid: string,
    token?: string,
    moveAway?: (error: MillraceError) => Promise<boolean>,
  ) =>
    admit({
      moveAway,
      ...{ remoteAddress: '192.0.2.7', remotePort: 5000, localPort: 10_080, peerVersion: '1.5.1' },
      streamId: formatPlayRequest({ rid, ...(token !== undefined && { token }) }),
      verifyEncryption: async () => undefined,
    })
  return { call, rejected }
}

/** Connects a reader. @returns whether its connection is closed at once */
function open(t: Test, decision: Awaited<ReturnType<ReturnType<typeof setUp>['call']>>): boolean {
  if (decision === undefined || 'reject' in decision) return t.fail('the reader is admitted')
  let isClosed = false
  const close = () => (isClosed = true)
  decision.sink.open({ close, finish: close } as unknown as SrtConnection)
  return isClosed
}
