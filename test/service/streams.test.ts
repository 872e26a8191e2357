import t from 'tap'
import { keyIdOf, MAX_LISTED_KEYS } from '../../src/auth/key-list.ts'
import { STREAM_KEY_LIFETIME_SEC, verifyStreamKey } from '../../src/auth/stream-key.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { Streams, type StreamsOptions } from '../../src/service/streams.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder } from '../../src/stream/publication.ts'
import { GopEncoder } from '../stream/gops.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'

const ENCODER: Encoder = {
  lastPacketUs: 0,
  report: () => PUBLISHER_REPORT,
  close: () => undefined,
}

/** Streams of processes that follow each other on one machine. */
function setUp() {
  let nowUs = 0
  const clock = {
    nowUs: () => nowUs,
    wallMs: () => Date.UTC(2026, 10, 22) + nowUs / 1000,
  }
  const pass = (sec: number) => void (nowUs += sec * 1e6)
  const startProcess = (given: Partial<StreamsOptions> = {}) => {
    pass(1)
    const resumed: string[] = []
    const readJwtSecrets = given.readJwtSecrets ?? (() => ['a'.repeat(32)] as const)
    const streams = new Streams({
      clock,
      cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
      formats: ['ts', 'cmaf'],
      segmentSec: 1,
      maxSegmentSec: 10,
      lowLatency: false,
      partMs: 200,
      playlistSegments: 3,
      lingerSec: 60,
      reconnectGraceSec: 120,
      maxStreams: 3,
      createEpoch: () => 'e',
      readJwtSecrets,
      resume: true,
      hasPlaybackSecret: false,
      webhookUrls: [],
      onStream: () => undefined,
      onResumed: ({ id }) => resumed.push(id),
      createSalt: () => 0,
      onViewers: () => undefined,
      ...given,
    })
    const start = async (encryption = false) => {
      const { stream, key } = await streams.start({ streamId: 'studio', encryption })
      return { streamKey: key.streamKey, passphrase: stream.encryption?.passphrase }
    }
    const admit = async ({ streamKey }: { readonly streamKey: string }) =>
      streams.admit(
        await verifyStreamKey(streamKey, {
          secrets: readJwtSecrets(),
          now: new Date(clock.wallMs()),
        }),
      )
    return { streams, start, admit, resumed }
  }
  return { startProcess, pass, wallMs: clock.wallMs }
}

t.test('a resumed stream is encrypted from its first encrypted key on', async (t) => {
  const { startProcess } = setUp()
  const before = startProcess()
  const inClear = await before.start()
  const encrypted = await before.start(true)
  const { admit } = startProcess()
  t.equal((await admit(inClear)).encryption, undefined)
  t.equal((await admit(encrypted)).encryption?.passphrase, encrypted.passphrase)
  t.equal((await admit(inClear)).encryption?.passphrase, encrypted.passphrase, 'and stays so')
})

t.test('a resumed stream has the latest passphrase of its keys', async (t) => {
  const { startProcess, pass } = setUp()
  const before = startProcess()
  const older = await before.start(true)
  before.streams.stop('studio')
  pass(1)
  const newer = await before.start(true)
  const { admit } = startProcess()
  t.equal((await admit(older)).encryption?.passphrase, older.passphrase)
  t.equal((await admit(newer)).encryption?.passphrase, newer.passphrase)
  t.equal((await admit(older)).encryption?.passphrase, newer.passphrase)
})

t.test('a stream started by the API adopts no passphrase of an older key', async (t) => {
  const { startProcess } = setUp()
  const encrypted = await startProcess().start(true)
  const { start, admit } = startProcess()
  await start()
  t.equal((await admit(encrypted)).encryption, undefined)
})

t.test('a resumed stream waits for an encoder until the last of its keys expires', async (t) => {
  const { startProcess, pass } = setUp()
  const before = startProcess()
  const older = await before.start()
  pass(600)
  const newer = await before.start()
  const { streams, admit } = startProcess()
  const stream = await admit(older)
  t.equal(await admit(newer), stream)
  pass(STREAM_KEY_LIFETIME_SEC - 300)
  streams.tick()
  t.equal(stream.status, 'READY')
})

t.test('a resumed stream whose key expired resumes again by a newer key', async (t) => {
  const { startProcess, pass } = setUp()
  const before = startProcess()
  const older = await before.start()
  pass(600)
  const newer = await before.start()
  const { streams, admit } = startProcess()
  const stream = await admit(older)
  pass(STREAM_KEY_LIFETIME_SEC - 300)
  streams.tick()
  t.equal(stream.status, 'STOPPED')
  t.equal((await admit(newer)).status, 'READY')
  streams.stop('studio')
  await t.rejects(admit(newer), { code: 'STREAM_NOT_FOUND' }, 'but not after stop-stream')
})

t.test('announces a resumed stream once, when its encoder is connected', async (t) => {
  const { startProcess } = setUp()
  const key = await startProcess().start()
  const { admit, resumed } = startProcess()
  const stream = await admit(key)
  t.strictSame(resumed, [])
  for (let i = 0; i < 2; i++) stream.publish(ENCODER)
  t.strictSame(resumed, ['studio'])
})

t.test('keys of an encrypted stream derive its passphrase throughout a rotation', async (t) => {
  const [fresh, old] = ['n'.repeat(32), 'o'.repeat(32)]
  const { startProcess } = setUp()
  const first = await startProcess({ readJwtSecrets: () => [old] }).start(true)
  const rotated = startProcess({ readJwtSecrets: () => [fresh, old] })
  await rotated.admit(first)
  const renewed = await rotated.start()
  t.equal(renewed.passphrase, first.passphrase)
  const { admit } = startProcess({ readJwtSecrets: () => [fresh, old] })
  t.equal((await admit(renewed)).encryption?.passphrase, first.passphrase)

  rotated.streams.stop('studio')
  const anew = await rotated.start(true)
  const last = startProcess({ readJwtSecrets: () => [fresh] })
  t.equal((await last.admit(anew)).encryption?.passphrase, anew.passphrase, 'signed with the new')
})

t.test('after three hours a key of a day goes on, and one of two hours is refused', async (t) => {
  const { startProcess, pass, wallMs } = setUp()
  let epochs = 0
  const { streams, admit } = startProcess({ createEpoch: () => `e${epochs++}` })
  const publish = async (streamId: string, keyLifetimeSec: number) => {
    const { stream, key } = await streams.start({ streamId, keyLifetimeSec })
    const announcedMin: number[] = []
    const leftMs = () => key.expiresAt.getTime() - wallMs()
    stream.on('key-expiring', () => announcedMin.push(Math.round(leftMs() / 60_000)))
    const encoder = { ...ENCODER, keyExpiresAtMs: key.expiresAt.getTime() }
    const gops = new GopEncoder()
    let publication = stream.publish(encoder)
    return {
      stream,
      key,
      announcedMin,
      push: () => publication.push(gops.encode([1])),
      leave: () => publication.end('shutdown'),
      comeBack: async () => {
        t.equal(await admit(key), stream)
        publication = stream.publish(encoder)
      },
    }
  }
  const [day, short] = [await publish('day', 86_400), await publish('short', 7200)]
  for (let sec = 0; sec < 3 * 3600; sec += 5) {
    pass(5)
    for (const { push } of [day, short]) push()
    streams.tick()
  }
  t.strictSame([day.announcedMin, short.announcedMin], [[], [10]])
  for (const { stream } of [day, short]) t.equal(stream.status, 'STREAMING', 'it outlives its key')
  const mediaSequence = () =>
    Number(
      /SEQUENCE:(\d+)/.exec(String(day.stream.files.get('playlist.m3u8')?.chunks.join('')))?.[1],
    )
  const before = mediaSequence()
  for (const { leave } of [day, short]) leave()
  pass(10)
  streams.tick()
  await t.rejects(admit(short.key), { code: 'STREAM_KEY_EXPIRED', message: 'Token expired' })
  await day.comeBack()
  for (let sec = 0; sec < 10; sec++) day.push()
  t.equal(day.stream.status, 'STREAMING')
  t.ok(mediaSequence() > before, `${mediaSequence()} after ${before}, under the same URL`)
})

t.test('lists keys, the one of the connected encoder included, and revokes one', async (t) => {
  const { startProcess, pass } = setUp()
  const { streams, admit } = startProcess()
  const issue = async () => (await streams.start({ streamId: 'studio' })).key
  const ids = (stream: LiveStream) => streams.keysOf(stream).map(({ keyId }) => keyId)
  const [old, other] = [await issue(), (pass(60), await issue())]
  const stream = streams.get('studio')
  const [otherId = '', oldId = ''] = ids(stream)
  const closed: string[] = []
  const connect = (source: 'main' | 'backup', keyId: string) =>
    stream.publish({ ...ENCODER, source, keyId, close: () => void closed.push(source) })
  connect('main', oldId)
  connect('backup', otherId)
  pass(1)
  streams.revokeKey('studio', oldId)
  t.strictSame(closed, ['main'], 'the other encoder stays')
  t.strictSame(ids(stream), [otherId])
  t.match(streams.keysOf(stream), [{ lastUsedAt: Date, expiresAt: other.expiresAt }])
  await t.rejects(admit(old), { code: 'STREAM_KEY_REVOKED' })
  t.equal(await admit(other), stream)
  pass(STREAM_KEY_LIFETIME_SEC)
  t.strictSame(ids(stream), [], 'all have expired')
  for (let times = 0; times < 200; times++) {
    pass(1)
    await issue()
  }
  t.equal(ids(stream).length, MAX_LISTED_KEYS)
})

t.test('stop revokes a key that was issued after a revoked one, in the same second', async (t) => {
  const { startProcess } = setUp()
  const { streams, start, admit } = startProcess()
  await start()
  const [leaked] = streams.keysOf(streams.get('studio'))
  streams.revokeKey('studio', leaked!.keyId)
  const ahead = await start()
  streams.stop('studio')
  await streams.start({ streamId: 'studio', keyLifetimeSec: 3600 })
  await admit(ahead)
  streams.stop('studio', { revoke: true })
  const renewed = await start()
  await t.rejects(admit(ahead), { code: 'STREAM_KEY_REVOKED' })
  await admit(renewed)
})

t.test('stop revokes a key that an issuer ahead of this process has dated later', async (t) => {
  const { startProcess, wallMs } = setUp()
  const ahead = startProcess({ clock: { nowUs: () => 0, wallMs: () => wallMs() + 5000 } })
  const issued = await ahead.start()
  const { streams, start, admit } = startProcess()
  await start()
  const verified = { secrets: ['a'.repeat(32)], now: new Date(wallMs()) }
  const keyId = keyIdOf(await verifyStreamKey(issued.streamKey, verified))
  const stream = await admit(issued)
  stream.publish({ ...ENCODER, keyId })
  streams.stop('studio', { revoke: true })
  const renewed = await start()
  await t.rejects(admit(issued), { code: 'STREAM_KEY_REVOKED' })
  await admit(renewed)
})

t.test('lists streams by id, in pages and by state', async (t) => {
  const { startProcess } = setUp()
  const { streams } = startProcess({ maxStreams: 10 })
  for (const streamId of ['c', 'a', 'e', 'b', 'd']) await streams.start({ streamId })
  const ids = (filter: Parameters<typeof streams.list>[0]) =>
    streams.list(filter).map(({ id }) => id)
  t.same(ids({ limit: 10 }), ['a', 'b', 'c', 'd', 'e'])
  t.same(ids({ limit: 2 }), ['a', 'b'])
  t.same(ids({ limit: 2, after: 'b' }), ['c', 'd'])
  t.same(ids({ limit: 2, after: 'bb' }), ['c', 'd'], 'the id of the last page may be gone')
  t.same(ids({ limit: 2, after: 'e' }), [])
  streams.stop('b')
  t.same(ids({ limit: 2, status: 'READY' }), ['a', 'c'])
  t.same(ids({ limit: 2, status: 'STOPPED' }), ['b'])
})

t.test('kick disconnects the encoder, and bans those that follow', async (t) => {
  const { startProcess, pass } = setUp()
  const { streams } = startProcess()
  const { stream } = await streams.start({ streamId: 'studio' })
  let closed = 0
  stream.publish({ ...ENCODER, close: () => void closed++ })
  const reasons: string[] = []
  stream.on('interrupted', ({ reason }) => reasons.push(reason))
  t.equal(streams.kick('studio'), stream)
  t.equal(closed, 1)
  t.same(reasons, ['kicked'])
  t.equal(stream.status, 'INTERRUPTED')
  t.ok(stream.policy.bannedUntilUs! <= 1e6, 'without a ban it may come back at once')
  t.notOk(streams.ownPolicyOf(stream).bannedUntil)
  streams.kick('studio', { banSec: 10 })
  t.equal(stream.policy.bannedUntilUs, 11e6)
  const { bannedUntil } = streams.ownPolicyOf(stream)
  pass(9)
  t.same(streams.ownPolicyOf(stream).bannedUntil, bannedUntil)
  pass(1)
  t.notOk(streams.ownPolicyOf(stream).bannedUntil)
  t.throws(() => streams.kick('unknown'), { code: 'STREAM_NOT_FOUND' })
})

t.test('a stream has the options that its starts gave it, until it stops', async (t) => {
  const { startProcess } = setUp()
  const { streams } = startProcess()
  const optionsAfter = async (request: object) => {
    const { stream } = await streams.start({ streamId: 'studio', ...request })
    return streams.ownPolicyOf(stream).options
  }
  t.same(await optionsAfter({ segmentSec: 1, latencyMs: 200 }), { segmentSec: 1, latencyMs: 200 })
  t.same(
    await optionsAfter({ segmentSec: 2, playlistSegments: 5, allowFrom: ['192.0.2.0/24'] }),
    { segmentSec: 1, latencyMs: 200, allowFrom: ['192.0.2.0/24'] },
    'a running stream keeps the options of its media',
  )
  streams.stop('studio')
  t.same(await optionsAfter({}), {})

  const key = await startProcess().start()
  const resumed = startProcess()
  const stream = await resumed.admit(key)
  await resumed.streams.start({ streamId: 'studio', segmentSec: 1, latencyMs: 200 })
  t.same(resumed.streams.ownPolicyOf(stream).options, { latencyMs: 200 })
})
