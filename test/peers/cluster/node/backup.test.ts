/**
 * Backup of segments: what viewers at an edge see of a stream that another node continues, or a new process.
 */
import t, { type Test } from 'tap'
import type { Server } from '../../../../src/service/server.ts'
import {
  encodeTo,
  killNode,
  startCluster,
  watchStream,
  type TestCluster,
  type TestViewer,
} from '../../support/cluster.ts'
import { freePort } from '../../../support/free-port.ts'
import { ask } from '../../support/redis.ts'
import { callApi, tryApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'

const numbersOf = ({ last }: TestViewer) => last.segments.map(({ sequence }) => sequence)
const latest = (viewer: TestViewer) => numbersOf(viewer).at(-1) ?? 0

async function grows(viewer: TestViewer, segments: number): Promise<void> {
  const free = latest(viewer)
  await until(
    'the playlist grows',
    () => viewer.last.segments.length > 2 && latest(viewer) >= free + segments,
  )
}

/** Segments of a playlist that are not gaps, by URI. */
async function mediaAt(port: number): Promise<Map<string, Buffer>> {
  const base = `http://127.0.0.1:${port}/video/studio`
  const text = await fetch(`${base}/playlist.m3u8`).then((reply) => reply.text())
  const gaps = new Set(text.match(/(?<=#EXT-X-GAP\n(#.*\n)*)[\w-]+\.ts/g))
  const uris = (text.match(/^[\w-]+\.ts$/gm) ?? []).filter((uri) => !gaps.has(uri))
  const files = uris.map(async (uri) => {
    const reply = await fetch(`${base}/${uri}`)
    return reply.status === 200 ? [[uri, Buffer.from(await reply.arrayBuffer())] as const] : []
  })
  return new Map((await Promise.all(files)).flat())
}

/** Segments that a viewer has seen listed, and that have left the playlist, as far as they are available; by URI. */
async function leftAt(port: number, { texts }: TestViewer): Promise<Map<string, Buffer>> {
  const urisOf = (text = '') => text.match(/^[\w-]+\.ts$/gm) ?? []
  const listed = new Set(urisOf(texts.at(-1)))
  const left = [...new Set(texts.flatMap(urisOf))].filter((uri) => !listed.has(uri))
  const files = left.map(async (uri) => {
    const reply = await fetch(`http://127.0.0.1:${port}/video/studio/${uri}`)
    return reply.status === 200 ? [[uri, Buffer.from(await reply.arrayBuffer())] as const] : []
  })
  return new Map((await Promise.all(files)).flat())
}

async function isWritten(server: Server): Promise<void> {
  const text = async () => {
    const reply = await fetch(`${server.publicUrl}/metrics`, { headers: AUTHORIZED })
    return reply.text()
  }
  await until('nothing waits', async () => (await text()).includes('backup_waiting_bytes 0\n'))
}

const TOKEN = 'm'.repeat(32)
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` }

/** A cluster with a backup, a node that has a stream, an edge with a viewer, and the media of the window. */
async function startStudio(t: Test, options: Parameters<typeof startCluster>[1] = {}) {
  const cluster = await startCluster(t, {
    ...{ clusterBackup: true, metrics: { token: TOKEN }, webhook: { allow: '127.0.0.1' } },
    ...options,
  })
  const [nodePort, srtPort] = [await freePort(), await freePort()]
  const start = () =>
    cluster.startNode({
      ...{ http: { host: '127.0.0.1', port: nodePort }, srt: { host: '127.0.0.1', port: srtPort } },
      nodeUrl: `http://127.0.0.1:${nodePort}`,
    })
  const a = await start()
  const hooks = await startWebhookReceiver(t)
  const key = await cluster.startStream('studio', { webhookUrls: [hooks.url] })
  const encoder = encodeTo(t, a, key, true)
  const edge = await cluster.startEdge()
  const viewer = watchStream(t, () => edge.port, 'studio')
  await until('a whole window', async () => (await mediaAt(a.httpPort)).size >= 5)
  return { cluster, a, start, hooks, key, encoder, edge, viewer }
}

function checkStays(t: Test, { complaints, texts }: TestViewer): void {
  t.strictSame(complaints, [])
  t.notMatch(texts.join(''), /#EXT-X-(DISCONTINUITY\n|GAP)/)
}

function checkViewer(t: Test, { complaints, texts }: TestViewer): void {
  t.strictSame(complaints, [])
  t.match(texts.join(''), '#EXT-X-DISCONTINUITY\n')
  t.notMatch(texts.join(''), '#EXT-X-ENDLIST')
}

/** Checks that a node has the media of the window before, but for what has left the window. */
async function checkMedia(t: Test, before: ReadonlyMap<string, Buffer>, port: number) {
  const base = `http://127.0.0.1:${port}/video/studio`
  const text = await fetch(`${base}/playlist.m3u8`).then((reply) => reply.text())
  const listed = [...before].filter(([uri]) => text.includes(`\n${uri}\n`))
  t.ok(listed.length > 0, `${listed.length} of ${before.size} segments are listed`)
  for (const [uri, bytes] of listed) {
    const reply = await fetch(`${base}/${uri}`)
    t.ok(bytes.equals(Buffer.from(await reply.arrayBuffer())), `${uri}: the same bytes`)
  }
}

for (const [what, end] of [
  ['closes', (_: TestCluster, server: Server) => server.close()],
  ['is killed', killNode],
] as const) {
  t.test(`a node continues a stream of one that ${what}, with its media`, async (t) => {
    if (!requireTool(t, 'redis-server')) return
    // What has left the window is available for as long as the window is.
    const { cluster, a, key, encoder, viewer } = await startStudio(t, {
      hls: { playlistSegments: 12 },
    })
    const b = await cluster.startNode()
    await until(
      'segments leave the playlist',
      async () => (await leftAt(a.httpPort, viewer)).size >= 3,
    )
    encoder.stop()
    await encoder.end
    await isWritten(a)
    const before = await mediaAt(a.httpPort)
    t.ok(before.size >= 5)
    const left = [...(await leftAt(a.httpPort, viewer))].slice(-3)
    const { fence } = (await cluster.registry.get('studio'))!
    await end(cluster, a)
    await until('another node serves the stream', async () => (await mediaAt(b.httpPort)).size > 0)
    t.ok((await cluster.registry.get('studio'))!.fence > fence)
    await checkMedia(t, before, b.httpPort)
    const kept = await leftAt(b.httpPort, viewer)
    for (const [uri, bytes] of left) t.ok(kept.get(uri)?.equals(bytes), `${uri} is still available`)
    encodeTo(t, b, key)
    await grows(viewer, 3)
    checkViewer(t, viewer)
    t.notMatch(viewer.texts.join(''), '#EXT-X-GAP')
    const metrics = await fetch(`${b.publicUrl}/metrics`, { headers: AUTHORIZED })
    t.match(await metrics.text(), /millrace_cluster_backup_bytes_total{result="read"} [1-9]/)
  })

  t.test(`a new process of a node that ${what} continues its streams`, async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { cluster, a, start, hooks, viewer } = await startStudio(t)
    const before = await mediaAt(a.httpPort)
    const numbers = numbersOf(viewer)
    const discontinuities = viewer.texts.join('').match(/#EXT-X-DISCONTINUITY\n/g)?.length ?? 0
    t.equal(discontinuities, 0)
    const seen = hooks.received.length
    await end(cluster, a)
    const restarted = await start()
    await until('the stream is there', async () => (await mediaAt(restarted.httpPort)).size > 0)
    await checkMedia(t, before, restarted.httpPort)
    await until('the encoder is back, with its key', async () => {
      return (await cluster.registry.get('studio'))?.status === 'STREAMING'
    })
    await grows(viewer, 3)
    checkViewer(t, viewer)
    t.ok(latest(viewer) < numbers.at(-1)! + 20, 'the numbers go on')
    const status = await callApi(
      restarted.publicUrl,
      'status',
      { stream_id: 'studio' },
      cluster.hmacSecret,
    )
    t.match(status.body.data, { status: 'STREAMING', live: true })
    await until('the receivers of the stream are told that it is live', () =>
      hooks.received.slice(seen).some(({ event }) => event.type === 'stream.live'),
    )
  })
}

t.test('what the backup does not have are gaps, and stay gaps', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, key, encoder, viewer } = await startStudio(t)
  const b = await cluster.startNode()
  encoder.stop()
  await encoder.end
  await isWritten(a)
  const before = [...(await mediaAt(a.httpPort)).keys()]
  const lost = before.filter((_, index) => index % 2 === 1)
  for (const uri of lost) await ask(cluster.redis.port, `DEL mr:{studio}:media:${uri}`)
  await killNode(cluster, a)
  await until('another node serves the stream', async () => (await mediaAt(b.httpPort)).size > 0)
  const text = await fetch(`${b.publicUrl}/video/studio/playlist.m3u8`).then((r) => r.text())
  for (const uri of lost) t.match(text, new RegExp(`#EXT-X-GAP\n(#.*\n)*${uri}`))
  encodeTo(t, b, key)
  await grows(viewer, 3)
  checkViewer(t, viewer)
})

t.test('a Redis without memory is away, for registry and backup, until it has some', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, encoder, viewer } = await startStudio(t)
  const status = () => callApi(a.publicUrl, 'status', { stream_id: 'studio' }, cluster.hmacSecret)
  const startOther = () =>
    tryApi(a.publicUrl, 'start-stream', { stream_id: 'other' }, cluster.hmacSecret)
  const metrics = async () => {
    const reply = await fetch(`${a.publicUrl}/metrics`, { headers: AUTHORIZED })
    return reply.text()
  }
  const { fence } = (await cluster.registry.get('studio'))!
  await ask(cluster.redis.port, 'CONFIG SET maxmemory 1')
  await until('segments are dropped', async () =>
    /backup_bytes_total\{result="dropped"\} [1-9]/.test(await metrics()),
  )
  // A script that has removed something may write.
  await until('calls are refused', async () => (await startOther()).status === 503)
  t.match((await status()).body.data, { status: 'STREAMING' })
  // Longer than a lease.
  await grows(viewer, 3)
  await ask(cluster.redis.port, 'CONFIG SET maxmemory 0')
  await until('it is asked again', async () => (await startOther()).status === 200)
  await until('nothing is left to tell', async () => {
    const { data } = (await status()).body
    return (data as { pending_writes?: number }).pending_writes === 0
  })
  t.equal((await cluster.registry.get('studio'))!.fence, fence, 'the owner stays')
  t.equal(encoder.events.length, 1, 'its encoder stays')
  checkStays(t, viewer)
})
