/**
 * Readers of streams over SRT: who may read, and what readers get.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { issuePlayToken } from '../../src/auth/srt-play-token.ts'
import { connect, parseSrtUrl, type Caller } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** A busy machine is never as late. */
const LATENCY_MS = 3000

t.test('a reader gets the stream, and status lists it', async (t) => {
  const { server, api } = await startService(t)
  const { data } = (await api('start-stream', { stream_id: 'studio', play: true })).body
  t.match(data['play_url'], /^srt:\/\/127\.0\.0\.1:\d+\?streamid=mode=request,rid=studio$/)
  const early = await read(t, data['play_url'] as string)
  publish(t, data['srt_url'] as string)
  await until('live', () => server.status('studio').live)
  const late = await read(t, data['play_url'] as string)
  await until('media', () => early.bytes().length > 200_000 && late.bytes().length > 100_000)
  const isPart = early.bytes().includes(late.bytes().subarray(0, 20 * 1316))
  t.ok(isPart, 'both get the same bytes')

  const record = (await api('status', { stream_id: 'studio' })).body.data
  t.equal(record['readers'].length, 2)
  t.match(record['readers'][0], {
    remote: /^127\.0\.0\.1:\d+$/,
    peer_version: '1.5.1',
    latency_ms: LATENCY_MS,
    packets_dropped: 0,
  })
  t.ok(record['readers'][0].bytes_sent > 200_000)
  t.ok(record['totals'].srt_bytes_sent > 300_000)

  await late.caller.close()
  await until('one has left', () => server.status('studio').readers.length === 1)
  await server.stopStream('studio')
  t.equal(await early.caller.closed, 'shutdown', 'the end of the stream')
  await t.rejects(read(t, data['play_url'] as string), refused(1010))
  await t.rejects(read(t, urlOf({ server }, 'mode=request,rid=none')), refused(1010))
})

t.test('readers encrypt as the encoders of the stream do', async (t) => {
  const { server, api } = await startService(t, { srt: { passphrase: 'of all streams' } })
  for (const encryption of [true, false]) {
    const request = { stream_id: `studio-${encryption}`, play: true, encryption }
    const { data } = (await api('start-stream', request)).body
    const url = data['play_url'] as string
    t.equal(/&passphrase=.*&pbkeylen=32$/.test(url), encryption)
    const shared = encryption ? '' : '&passphrase=of%20all%20streams'
    const reader = await read(t, url + shared)
    publish(t, data['srt_url'] + shared)
    await until('media', () => reader.bytes().length > 100_000)
    t.equal(reader.bytes()[0], 0x47)
    await t.rejects(read(t, url.replace(/&passphrase.*/, '')), refused(1011))
    const wrong = `${url.replace(/&passphrase.*/, '')}&passphrase=${'x'.repeat(32)}`
    await t.rejects(read(t, wrong), refused(1010))
    await server.stopStream(request.stream_id)
  }
})

t.test('with PLAYBACK_SECRET a token is needed, unless the stream is public', async (t) => {
  const playbackSecret = randomBytes(32).toString('hex')
  const service = await startService(t, { playbackSecret })
  const { server, api } = service
  const { data } = (await api('start-stream', { stream_id: 'studio', play: true })).body
  const { caller } = await read(t, data['play_url'] as string)
  await caller.close()

  const tokenOf = (rid: string, expiresMs: number, secret = playbackSecret) =>
    issuePlayToken(rid, { secret, expiresAt: new Date(Date.now() + expiresMs) })
  const request = (token: string) => urlOf(service, `mode=request,rid=studio,token=${token}`)
  const [, ofEncoder] = String(data['stream_key']).split('token=')
  const expired = request(await tokenOf('studio', -1000))
  const foreign = request(await tokenOf('other', 60_000))
  const forged = request(await tokenOf('studio', 60_000, randomBytes(32).toString('hex')))
  const publishing = request(ofEncoder!)
  const none = urlOf(service, 'mode=request,rid=studio')
  const unknown = urlOf(service, 'mode=request,rid=none')
  const nothing = urlOf(service, 'mode=request')
  for (const url of [expired, foreign, forged, publishing, none, unknown, nothing])
    await t.rejects(read(t, url), refused(1010))
  const guidelines = `#!::m=request,r=studio,token=${await tokenOf('studio', 60_000)}`
  const again = await read(t, urlOf(service, guidelines))
  await again.caller.close()

  const [, playToken] = String(data['play_url']).split('token=')
  await t.rejects(
    read(t, urlOf(service, `mode=publish,rid=studio,token=${playToken}`)),
    refused(1010),
  )
  t.equal(server.status('studio').publisher, undefined)

  await api('start-stream', { stream_id: 'studio', playback_token: false })
  await (await read(t, none)).caller.close()
})

t.test('SRT_MAX_READERS, and half of it for a stream', async (t) => {
  const service = await startService(t, { srt: { maxReaders: 4 } })
  for (const id of ['a', 'b', 'c']) await service.server.startStream({ streamId: id })
  const readOf = (id: string) => read(t, urlOf(service, `mode=request,rid=${id}`))
  const first = await readOf('a')
  await readOf('a')
  await t.rejects(readOf('a'), refused(1003))
  await readOf('b')
  await readOf('b')
  await t.rejects(readOf('c'), refused(1003))
  await first.caller.close()
  await until('room', () => service.server.status('a').readers.length === 1)
  await readOf('c')
  const off = await startService(t, { srt: { maxReaders: 0 } })
  await off.server.startStream({ streamId: 'a' })
  await t.rejects(read(t, urlOf(off, 'mode=request,rid=a')), refused(1003))
})

function urlOf({ server }: Pick<TestService, 'server'>, streamId: string): string {
  return `srt://127.0.0.1:${server.srtPort}?streamid=${streamId}`
}

/** Reads until the end of the test. */
async function read(t: Test, url: string): Promise<{ caller: Caller; bytes: () => Buffer }> {
  const payloads: Buffer[] = []
  const sink = {
    open: () => {},
    end: () => {},
    push: (payload: Buffer) => void payloads.push(payload),
    gap: () => t.fail('packets are missing'),
  }
  const caller = await connect({ ...parseSrtUrl(url), latencyMs: LATENCY_MS, sink })
  t.teardown(() => caller.close())
  return { caller, bytes: () => Buffer.concat(payloads) }
}

function publish(t: Test, url: string): void {
  publishDemo(t, `${url}&latency=${LATENCY_MS}`, { mayFail: true })
}

function refused(rejectCode: number) {
  return { code: 'SRT_REJECTED', rejectCode }
}
