/**
 * Viewers at a node that does not own their stream.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import t, { type Test } from 'tap'
import { signPlaybackToken } from '../../../../src/auth/playback-token.ts'
import { systemClock } from '../../../../src/timing/clock.ts'
import { NODE_CALL, NodeCalls } from '../../../../src/auth/node-calls.ts'
import type { ServerOptions } from '../../../../src/index.ts'
import type { Server } from '../../../../src/service/server.ts'
import { encodeTo, startCluster, watchStream } from '../../support/cluster.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const METRICS_TOKEN = 'test-metrics-token-0123456789abcdef'
/** With low latency. */
const PLAYLIST = '/video/studio/cmaf-video-1.m3u8'

/** Two nodes, of which the first owns a stream. */
async function startStudio(t: Test, options: Partial<ServerOptions> = {}) {
  const cluster = await startCluster(t, options)
  const [a, b] = [await cluster.startNode(), await cluster.startNode()]
  const key = await cluster.startStream('studio')
  const encoder = encodeTo(t, a, key)
  const calls = new NodeCalls(() => [cluster.clusterSecret], systemClock)
  const ask = async (node: Server, path: string, isNode = false) => {
    const signed = isNode && { [NODE_CALL]: calls.sign({ method: 'GET', path }) }
    const headers = { 'accept-encoding': 'identity', ...signed }
    const reply = await fetch(node.publicUrl + path, { headers })
    const { 'cache-control': caching, etag } = Object.fromEntries(reply.headers)
    return { status: reply.status, caching, etag, body: Buffer.from(await reply.arrayBuffer()) }
  }
  return { cluster, a, b, key, encoder, ask }
}

/** Waits for a playlist with two segments, and a tag. */
async function played(read: () => Promise<{ body: Buffer }>, tag = ''): Promise<string> {
  return until('two segments', async () => {
    const text = (await read()).body.toString()
    return text.split('#EXTINF').length > 2 && text.includes(tag) && text
  })
}

/** Media sequence number of the last complete segment. */
function lastSequence(text: string): number {
  return Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)![1]) + text.split('#EXTINF').length - 2
}

t.test('every node serves a stream byte for byte like its owner', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { a, b, ask } = await startStudio(t, { hls: { lowLatency: true } })
  const text = await played(() => ask(b, PLAYLIST), 'EXT-X-PART:')
  const segment = /^\S+\.m4s$/m.exec(text)![0]
  const init = /EXT-X-MAP:URI="([^"]+)"/.exec(text)![1]!
  const part = /PART:.*URI="([^"]+)"/.exec(text)![1]!
  const ts = await played(() => ask(b, '/video/studio/playlist.m3u8'))
  const whole = /^\S+\.ts$/m.exec(ts)![0]
  for (const name of [segment, init, part, whole, 'master.m3u8', 'ts.m3u8', 'none.ts']) {
    const path = `/video/studio/${name}`
    t.strictSame(await ask(b, path), await ask(a, path), name)
  }
  // A version may end between the two reads.
  const { own, other } = await until('replies of one version', async () => {
    const last = lastSequence((await ask(b, PLAYLIST)).body.toString())
    const coming = `${PLAYLIST}?_HLS_msn=${last + 1}&_HLS_part=0`
    const [own, other] = await Promise.all([ask(a, coming), ask(b, coming)])
    return own.status === 200 && own.etag === other.etag && { own, other }
  })
  t.strictSame(other, own, 'a blocking reload')
  const hint = async (node: Server) => {
    const { body } = await ask(node, PLAYLIST)
    return ask(node, `/video/studio/${/PRELOAD-HINT:.*URI="([^"]+)"/.exec(body.toString())![1]}`)
  }
  t.equal((await hint(b)).status, 200, 'a part that is to come')
})

t.test('no node asks another on behalf of a third', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { a, b, ask } = await startStudio(t)
  await played(() => ask(b, PLAYLIST))
  t.equal((await ask(b, PLAYLIST, true)).status, 421)
  t.equal((await ask(a, PLAYLIST, true)).status, 200)
  for (const node of [a, b]) {
    const { status, body } = await ask(node, '/video/nobody/playlist.m3u8')
    t.match([status, body.toString()], [404, /STREAM_NOT_FOUND/])
  }
  const state = '/watch/studio/state'
  t.match((await ask(b, state)).body.toString(), '"status":"STREAMING"')
  t.equal((await ask(b, state, true)).status, 404)
  t.equal((await ask(b, '/watch/nobody/state')).status, 404)
})

t.test('viewers need the same token at every node', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const playbackSecret = randomBytes(32).toString('hex')
  const { cluster, a, b, ask } = await startStudio(t, { playbackSecret })
  const expiresAt = new Date(Date.now() + 600_000)
  const token = (streamId: string) =>
    `/t/${signPlaybackToken({ streamId, secret: playbackSecret, expiresAt })}`
  const edge = await cluster.startEdge()
  const atEdge = async (path: string) =>
    (await fetch(`http://127.0.0.1:${edge.port}${path}`)).status
  await played(() => ask(b, token('studio') + PLAYLIST))
  for (const [path, status] of [
    [PLAYLIST, 403],
    [token('other') + PLAYLIST, 403],
    [`${token('studio')}/video/studio/master.m3u8`, 200],
    [`${token('studio')}/watch/studio/state`, 200],
    ['/watch/studio/state', 403],
    ['/video/studio', 403],
    [`${token('studio')}/video/studio`, 204],
    // Without a token nobody learns which ids exist.
    ['/video/nobody/playlist.m3u8', 403],
    ['/video/nobody/a.ts', 403],
    ['/video/nobody', 403],
    ['/watch/nobody/state', 403],
    ['/t/x/watch/nobody/state', 403],
    [`${token('nobody')}/video/nobody/playlist.m3u8`, 404],
    [`${token('nobody')}/watch/nobody/state`, 404],
  ] as const) {
    t.equal((await ask(a, path)).status, status, path)
    t.equal((await ask(b, path)).status, status, path)
    // Edges do not tell proxies who has access.
    const isAsked = /\.|state$/.test(path.replace(/^\/t\/[^/]*/, ''))
    if (isAsked) t.equal(await atEdge(path), status, `${path} at an edge`)
  }
})

t.test('viewers of both nodes follow a stream from one to the other', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, b, key, encoder, ask } = await startStudio(t)
  await played(() => ask(b, PLAYLIST))
  const viewers = [a, b].map(({ httpPort }) => watchStream(t, () => httpPort, 'studio'))
  const { fence } = (await cluster.registry.get('studio'))!
  encoder.stop()
  await encoder.end
  // They wait at the first node, and are answered with what the second one has.
  const next = lastSequence((await ask(a, PLAYLIST)).body.toString()) + 1
  const late = [a, b].map((node) => ask(node, `${PLAYLIST}?_HLS_msn=${next}`))
  encodeTo(t, b, key)
  await until('the second node owns the stream', async () => {
    return (await cluster.registry.get('studio'))!.fence > fence
  })
  for (const viewer of viewers) {
    await until('the playlist goes on', () => viewer.last.segments.at(-1)!.sequence > next + 1)
  }
  for (const { status } of await Promise.all(late)) t.equal(status, 200)
  for (const { complaints, failures } of viewers) t.strictSame([complaints, failures], [[], []])
})

t.test('viewers at all nodes and edges count at the owner, each of them once', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { cluster, a, b, ask } = await startStudio(t, { metrics: { token: METRICS_TOKEN } })
  const edge = await cluster.startEdge()
  // The reader here is a viewer as well.
  await played(() => ask(a, PLAYLIST))
  const read = async (port: number, session: string) => {
    const cmcd = encodeURIComponent(`sid="${session}"`)
    return (await fetch(`http://127.0.0.1:${port}${PLAYLIST}?CMCD=${cmcd}`)).status
  }
  const viewers = await until('the viewers of the others', async () => {
    for (const { port, session } of [
      { port: a.httpPort, session: 'at-a' },
      { port: b.httpPort, session: 'at-b' },
      { port: edge.port, session: 'at-edge' },
    ]) {
      t.equal(await read(port, session), 200)
      t.equal(await read(port, 'everywhere'), 200)
    }
    const count = a.status('studio').viewers
    return count >= 5 && count
  })
  t.equal(viewers, 5)
  t.equal((await b.control.status('studio')).viewers, 5)
  const { edges = [] } = await b.control.status('studio')
  t.same(
    edges.map((each) => each.edge).toSorted(),
    [b.publicUrl, `${hostname()}:${edge.port}`].toSorted(),
    'the owner knows who reads its stream',
  )
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const scrape = await (await fetch(`${a.publicUrl}/metrics`, { headers })).text()
  t.match(scrape, /^millrace_edges\{stream="studio"\} 2$/m)
  const lagSec = Number(/^millrace_edge_lag_seconds\{stream="studio"\} (.*)$/m.exec(scrape)?.[1])
  t.ok(lagSec >= 0 && lagSec < 30, `${lagSec} s`)
})

t.test('the dashboard of every node has the preview of a stream', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const password = randomBytes(16).toString('hex')
  // Viewers need a token, the dashboard does not.
  for (const playbackSecret of ['', randomBytes(32).toString('hex')]) {
    const options = { admin: { password }, playbackSecret }
    const { a, b } = await startStudio(t, options)
    const login = async ({ publicUrl }: Server) => {
      const headers = { origin: publicUrl, 'content-type': 'application/json' }
      const body = JSON.stringify({ password })
      const reply = await fetch(`${publicUrl}/admin/login`, { method: 'POST', headers, body })
      const cookie = reply.headers.getSetCookie()[0]!.split(';')[0]!
      return async (path: string) => {
        const answer = await fetch(`${publicUrl}/admin/streams/${path}`, { headers: { cookie } })
        return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) }
      }
    }
    const [atOwner, atOther] = [await login(a), await login(b)]
    await until('the bytes that the owner has', async () => {
      const [own, other] = await Promise.all(
        [atOwner, atOther].map((ask) => ask('studio/preview.ts')),
      )
      return own!.status === 200 && own!.body.equals(other!.body)
    })
    t.match(await atOther('nobody/preview.ts'), { status: 404, body: /STREAM_NOT_FOUND/ })
    t.equal((await atOther('..%2fstudio/preview.ts')).status, 404)
    t.equal((await atOther('studio/history')).status, 200, 'graphs begin empty')
    t.equal(a.status('studio').viewers, 0, 'it is no viewer')
  }
})
