/**
 * Options of start-stream over real SRT and HTTP: what each changes for its stream, and not for others.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { connect } from '../../src/srt/index.ts'
import { systemClock } from '../../src/timing/clock.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { segmentUris } from '../support/viewer.ts'
import { findEvent, startWebhookReceiver } from '../support/webhook-receiver.ts'

const DEMO = new URL('../../fixtures/demo.mpegts', import.meta.url)

/** Starts a stream with these options and publishes to it until the end of the test. */
async function publishWith(t: Test, service: TestService, streamId: string, options: object) {
  const body = { stream_id: streamId, ...options }
  const { body: started } = await service.api('start-stream', body)
  publishDemo(t, started.data['srt_url'], { mayFail: true })
}

t.test(
  'segment_sec, part_ms and playlist_segments shape the playlist of their stream',
  async (t) => {
    const service = await startService(t, { hls: { segmentSec: 3, playlistSegments: 4 } })
    const own = { segment_sec: 0.5, part_ms: 700, playlist_segments: 5 }
    await publishWith(t, service, 'own', own)
    await publishWith(t, service, 'usual', {})
    const playlistOf = async (id: string, name = 'playlist.m3u8') =>
      (await fetch(`${service.url}/video/${id}/${name}`)).text()
    const valuesOf = (playlist: string, pattern: RegExp) =>
      [...playlist.matchAll(pattern)].map(([, value]) => Number(value))

    const usual = await until('four usual segments', async () => {
      const playlist = await playlistOf('usual')
      return segmentUris(playlist).length >= 4 && playlist
    })
    const playlist = await playlistOf('own')
    const longest = (text: string) => Math.max(...valuesOf(text, /^#EXTINF:([\d.]+)/gm))
    t.ok(longest(playlist) <= 2, `segments of ${longest(playlist)} s`)
    t.ok(longest(usual) >= 3, `usual segments of ${longest(usual)} s`)
    const partsOf = async (id: string) =>
      valuesOf(await playlistOf(id, 'cmaf-video-1.m3u8'), /PART-TARGET=([\d.]+)/g)
    const [partSec] = await partsOf('own')
    const [usualPartSec] = await partsOf('usual')
    t.ok(partSec! >= 0.7 && partSec! < 1.1, `parts of ${partSec} s`)
    t.ok(usualPartSec! < 0.6, `usual parts of ${usualPartSec} s`)
    t.equal(service.server.status('own').playlist.wantedSegments, 5)
    t.equal(service.server.status('usual').playlist.wantedSegments, 4)

    await until('the first segment is gone', async () => {
      const [first] = segmentUris(await playlistOf('own'))
      return first !== segmentUris(playlist)[0]
    })
    t.equal(segmentUris(await playlistOf('own')).length, 5)

    await service.server.startStream({ streamId: 'own', playlistSegments: 9 })
    t.equal(service.server.status('own').playlist.wantedSegments, 5, 'kept until the stream stops')
    await service.server.stopStream('own')
    await service.server.startStream({ streamId: 'own' })
    t.equal(service.server.status('own').playlist.wantedSegments, 4, 'and no longer')
  },
)

t.test('latency_ms replaces SRT_LATENCY_MS for the next encoders of its stream', async (t) => {
  const service = await startService(t, { srt: { latencyMs: 300 } })
  const host = '127.0.0.1'
  const port = service.server.srtPort
  const latencyOf = async (proposedMs: number, latencyMs?: number) => {
    const { streamKey } = await service.server.startStream({ streamId: 'studio', latencyMs })
    const caller = await connect({ host, port, streamId: streamKey, latencyMs: proposedMs })
    const { body } = await service.api('status', { stream_id: 'studio' })
    await caller.close()
    await until(
      'the encoder is gone',
      () => service.server.findStream('studio')!.encoder === undefined,
    )
    return body.data['publisher'].latency_ms
  }
  t.equal(await latencyOf(20), 300, 'SRT_LATENCY_MS')
  t.equal(await latencyOf(20, 40), 40, 'less than SRT_LATENCY_MS')
  t.equal(await latencyOf(20), 40, 'kept by a start without it')
  t.equal(await latencyOf(20, 2000), 2000, 'replaced')
  t.equal(await latencyOf(3000), 3000, 'an encoder may ask for more')
})

t.test('allow_from refuses encoders of other addresses with 2403', async (t) => {
  const service = await startService(t)
  const hooks = await startWebhookReceiver(t)
  const host = '127.0.0.1'
  const port = service.server.srtPort
  const start = async (allow_from?: string[]) => {
    const body = { stream_id: 'studio', webhook_urls: [hooks.url], allow_from }
    return (await service.api('start-stream', body)).body.data['stream_key'] as string
  }
  const elsewhere = ['192.0.2.0/24', '2001:db8::/32', '127.0.0.2']
  const streamId = await start(elsewhere)
  await t.rejects(connect({ host, port, streamId }), { code: 'SRT_REJECTED', message: /2403/ })
  const event = await until('stream.rejected', () => findEvent(hooks, 'stream.rejected'))
  t.match(event.data, { remote: /^127\.0\.0\.1:/, reason: /address of the encoder is not allowed/ })

  await start()
  await t.rejects(connect({ host, port, streamId }), { message: /2403/ }, 'kept by a start without')

  await start([...elsewhere, '127.0.0.0/29'])
  const caller = await connect({ host, port, streamId })
  await start(elsewhere)
  t.equal(service.server.status('studio').status, 'STREAMING', 'a connected encoder stays')
  await caller.close()
})

t.test('allow_from holds for an encoder that waits while it changes', async (t) => {
  const { server } = await startService(t)
  const hooks = await startWebhookReceiver(t)
  const options = { streamId: 'studio', webhookUrls: [hooks.url] }
  const { srtUrl } = await server.startStream(options)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  // With retries: on a busy machine the second may have waited in vain before the terms change.
  const encoder = { file: DEMO, url: srtUrl, loop: true, retry: true, signal: stop.signal }
  const send = () => void publish(encoder)
  send()
  await until('fed', () => server.status('studio').status === 'STREAMING')
  send()
  // Nothing tells that it waits. Too short, and it calls under the new terms, which refuse it as well.
  await sleep(80)
  await server.startStream({ ...options, allowFrom: ['192.0.2.0/24'] })
  server.kick('studio')
  await until('stream.rejected', () => findEvent(hooks, 'stream.rejected'))
  t.equal(server.status('studio').totals.publishers, 1)
})

t.test('start-stream refuses options outside their bounds, and says what it expects', async (t) => {
  const { tryApi, server } = await startService(t, { hls: { lowLatency: false, maxSegmentSec: 8 } })
  const cases: [object, string][] = [
    ...[0.4, 61, '2', null].map(
      (segment_sec) =>
        [{ segment_sec }, 'segment_sec must be a number from 0.5 to 60'] as [object, string],
    ),
    [{ segment_sec: 9 }, 'segment_sec must be at most HLS_MAX_SEGMENT_SEC, 8'],
    ...[99, 1001, 200.5].map(
      (part_ms) =>
        [{ part_ms }, 'part_ms must be a whole number from 100 to 1000'] as [object, string],
    ),
    [{ part_ms: 200 }, 'part_ms must be absent: HLS_LOW_LATENCY is false'],
    ...[2, 1001, 3.5].map(
      (playlist_segments) =>
        [{ playlist_segments }, 'playlist_segments must be a whole number from 3 to 1000'] as [
          object,
          string,
        ],
    ),
    ...[19, 8001, 20.5].map(
      (latency_ms) =>
        [{ latency_ms }, 'latency_ms must be a whole number from 20 to 8000'] as [object, string],
    ),
    ...['ts', [], ['fmp4'], ['ts', 'ts'], null].map(
      (formats) => [{ formats }, 'formats must be a list of ts, cmaf or both'] as [object, string],
    ),
    ...[
      '10.0.0.0/8',
      [],
      [''],
      ['example.org'],
      ['10.0.0.0/33'],
      ['10.0.0.0/8/8'],
      ['::/129'],
      [7],
      Array.from({ length: 65 }, () => '::'),
    ].map(
      (allow_from) =>
        [{ allow_from }, 'allow_from must be 1 to 64 IP addresses or CIDR blocks'] as [
          object,
          string,
        ],
    ),
  ]
  for (const [options, error] of cases) {
    const reply = await tryApi('start-stream', { stream_id: 'studio', ...options })
    t.match(reply, { status: 400, body: { code: 'BODY_INVALID', error } }, JSON.stringify(options))
  }
  t.equal(server.findStream('studio'), undefined, 'nothing was started')
})

t.test('status has the options of a stream, and the end of a ban', async (t) => {
  const { api } = await startService(t)
  const options = { segment_sec: 0.5, part_ms: 200, latency_ms: 300, allow_from: ['127.0.0.0/8'] }
  await api('start-stream', { stream_id: 'studio', ...options })
  const { data } = (await api('status', { stream_id: 'studio' })).body
  t.same(data['options'], options)
  t.notOk('banned_until' in data)
  const kickedMs = systemClock.wallMs()
  const kicked = await api('kick', { stream_id: 'studio', ban_sec: 60 })
  const fromMs = Date.parse(kicked.body.data['banned_until']) - 60_000
  // Each time is rounded.
  t.ok(fromMs >= kickedMs - 2 && fromMs <= systemClock.wallMs() + 2, `${fromMs - kickedMs} ms`)
})
