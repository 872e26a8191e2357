/**
 * Main and backup encoder of a stream in a cluster: both call its owner, and any node switches.
 */
import t from 'tap'
import type { EndpointName } from '../../../../src/api/endpoints.ts'
import type { Server } from '../../../../src/service/server.ts'
import { createLogger } from '../../../../src/logger.ts'
import { connect } from '../../../../src/srt/index.ts'
import { encodeTo, startCluster } from '../../support/cluster.ts'
import { callApi } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const STUDIO = { stream_id: 'studio' }

t.test(
  'the backup calls the owner, any node switches, and the choice outlives the owner',
  async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const cluster = await startCluster(t)
    const log: string[] = []
    const logger = createLogger('info', { write: (line) => void log.push(line) })
    const [a, b] = [await cluster.startNode({ logger }), await cluster.startNode()]
    const api = async (node: Server, name: EndpointName, body: object = STUDIO) =>
      (await callApi(`http://127.0.0.1:${node.httpPort}`, name, body, cluster.hmacSecret)).body.data
    const onAir = (node: Server, source: string) =>
      until(`${source} on air`, async () => (await api(node, 'status'))['on_air'] === source)

    const keys = await api(a, 'start-stream', { ...STUDIO, backup: true })
    const [key, backupKey] = [String(keys['stream_key']), String(keys['backup_stream_key'])]
    const main = encodeTo(t, b, key, true)
    await onAir(a, 'main')
    const elsewhere = { host: '127.0.0.1', port: a.srtPort, streamId: backupKey }
    await t.rejects(connect(elsewhere), /2409/, 'the owner is another node')
    t.match(
      log.join(''),
      `an encoder publishes at ${b.publicUrl}: a backup encoder must call that node`,
    )
    const backup = encodeTo(t, b, backupKey, true)
    await until('both are connected', async () => (await api(a, 'status'))['sources'].length === 2)
    t.match(await api(a, 'switch-source', { ...STUDIO, source: 'backup' }), { status: 'STREAMING' })
    await onAir(a, 'backup')

    main.stop()
    backup.stop()
    await b.close()
    encodeTo(t, a, key, true)
    await onAir(a, 'main')
    encodeTo(t, a, backupKey, true)
    await onAir(a, 'backup')
    await t.rejects(api(a, 'start-stream', { ...STUDIO, slate: 'x.ts', always_on: true }), /400/)
  },
)
