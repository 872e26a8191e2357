/**
 * A listener that a cluster sends to: the owner of the stream does, and the next one takes over with the stream.
 */
import t, { type Test } from 'tap'
import type { Server } from '../../../../src/service/server.ts'
import { createListener } from '../../../../src/srt/index.ts'
import { encodeTo, killNode, startCluster } from '../../support/cluster.ts'
import { ask } from '../../support/redis.ts'
import { callApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const STUDIO = { stream_id: 'studio' }
const SECRETS = { streamid: 'a-secret-stream-id', passphrase: 'a-secret-passphrase' }

t.test('the owner sends to the listener, and the next owner takes over', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const cluster = await startCluster(t)
  const [a, b] = [await cluster.startNode(), await cluster.startNode()]
  const api = async (node: Server, name: 'start-stream' | 'status', body: object = STUDIO) =>
    (await callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)).body.data
  const { port, received } = await listen(t)
  const remote = `127.0.0.1:${port}`
  const isToldBy = async (node: Server) => {
    const [push] = (await api(node, 'status'))['pushes'] as { remote: string; state: string }[]
    return push?.remote === remote && push.state === 'CONNECTED'
  }

  const { stream_key: key } = await api(a, 'start-stream', {
    ...STUDIO,
    push_urls: [`srt://${remote}?${new URLSearchParams(SECRETS).toString()}`],
  })
  encodeTo(t, a, String(key), true)
  await until('media', () => received.bytes > 100_000)
  await until('the other node tells of it', () => isToldBy(b))
  const record = await ask(cluster.redis.port, 'HGETALL mr:{studio}')
  t.match(record, /s\.pushUrls/)
  t.notMatch(record, new RegExp(Object.values(SECRETS).join('|')), 'sealed in Redis')

  await killNode(cluster, a)
  encodeTo(t, b, String(key), true)
  await until('the other node calls', () => isToldBy(b))
  const { bytes } = received
  await until('its media', () => received.bytes > bytes + 100_000)

  await api(b, 'start-stream', { ...STUDIO, push_urls: [] })
  t.strictSame((await api(b, 'status'))['pushes'], [])
  await until('called no more', () => received.connections === 0)
})

/** A listener that counts what it receives, and its open connections. */
async function listen(t: Test) {
  const received = { bytes: 0, connections: 0 }
  const { streamid, passphrase } = SECRETS
  const listener = await createListener({
    ...{ host: '127.0.0.1', port: 0, latencyMs: 120, passphrase },
    accept: async ({ streamId }) => {
      if (streamId !== streamid) return { reject: 1010 }
      return {
        sink: {
          open: () => void received.connections++,
          push: ({ length }) => void (received.bytes += length),
          gap: () => undefined,
          end: () => void received.connections--,
        },
      }
    },
  })
  t.teardown(() => listener.close())
  return { port: listener.address().port, received }
}
