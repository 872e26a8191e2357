/**
 * Readers over SRT in a cluster: the owner of the stream has them, and other nodes name it.
 */
import t from 'tap'
import { connect } from '../../../../src/srt/index.ts'
import type { Server } from '../../../../src/service/server.ts'
import { encodeTo, startCluster } from '../../support/cluster.ts'
import { callApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

t.test('a reader of a public stream that calls another node is refused with 2409', async (t) => {
  if (!requireTool(t, 'redis-server', 'ffmpeg')) return
  const cluster = await startCluster(t, { playbackSecret: 'p'.repeat(32) })
  const [a, b] = [await cluster.startNode(), await cluster.startNode()]
  const api = async (node: Server, name: 'start-stream' | 'status', options = {}) => {
    const body = { stream_id: 'studio', ...options }
    const url = `http://127.0.0.1:${node.httpPort}`
    return (await callApi(url, name, body, cluster.hmacSecret)).body.data
  }
  const { stream_key: key } = await api(a, 'start-stream', { playback_token: false })
  encodeTo(t, a, String(key), true)
  await until('live', async () => (await api(a, 'status'))['live'])

  let bytes = 0
  const read = (node: Server, rid: string) =>
    connect({
      ...{ host: '127.0.0.1', port: node.srtPort, streamId: `mode=request,rid=${rid}` },
      sink: {
        open: () => undefined,
        push: ({ length }) => void (bytes += length),
        gap: () => undefined,
        end: () => undefined,
      },
    })
  await t.rejects(read(b, 'studio'), { code: 'SRT_REJECTED', rejectCode: 2409 })
  await t.rejects(read(b, 'none'), { code: 'SRT_REJECTED', rejectCode: 1010 })
  const reader = await read(a, 'studio')
  await until('media', () => bytes > 100_000)
  await until('another node tells of it', async () => {
    const { readers } = await api(b, 'status')
    return (readers as unknown[]).length === 1
  })
  await reader.close()
  await a.stopStream('studio')
  await t.rejects(read(a, 'studio'), { code: 'SRT_REJECTED', rejectCode: 1010 }, 'it has stopped')
})
