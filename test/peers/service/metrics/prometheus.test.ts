/**
 * Metrics as Prometheus reads them: its linter, a scrape of a live service, and the queries of the dashboard.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { systemClock } from '../../../../src/timing/clock.ts'
import { publish } from '../../../../src/cli/publisher/publisher.ts'
import { publishDemo } from '../../../support/demo-encoder.ts'
import { CLUSTER_FAMILIES } from '../../../../src/cluster/node/node-metrics.ts'
import { SERVICE_FAMILIES } from '../../../../src/service/metrics/service-families.ts'
import { STREAM_FAMILIES } from '../../../../src/service/metrics/stream-families.ts'
import { PUBLISHER_REPORT } from '../../../stream/publisher-report.ts'
import { freePort } from '../../../support/free-port.ts'
import { startPrometheus } from '../../support/prometheus.ts'
import { startService, type TestService } from '../../../support/service.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const ROOT = new URL('../../../../', import.meta.url)
const CLIP = fileURLToPath(new URL('fixtures/demo.mpegts', ROOT))

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets?: readonly { expr: string }[]
  }[]
}

const { panels } = JSON.parse(
  readFileSync(new URL('deploy/grafana/millrace.json', ROOT), 'utf8'),
) as Dashboard

/** Expressions of all panels, with the values that Grafana gives to their variables. */
const EXPRESSIONS = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expression: expr.replaceAll('$__rate_interval', '8s').replaceAll(/\$(instance|stream)/g, '.*'),
  })),
)

function isOfCluster({ expression }: { readonly expression: string }): boolean {
  return expression.includes('millrace_cluster_')
}

t.test('panels of the cluster show metrics that its nodes have', async (t) => {
  const expressions = EXPRESSIONS.filter(isOfCluster)
  t.equal(expressions.length, 3)
  for (const { title, expression } of expressions) {
    const name = /millrace_cluster_\w+/.exec(expression)?.[0]
    t.ok(
      CLUSTER_FAMILIES.some((family) => family.name === name),
      title,
    )
  }
})

const LINE = {
  ...{ line: 1, remote: '192.0.2.1:5000', bitrateBps: 0 },
  ...{ bytesReceived: 0, packetsReceived: 0, packetsRetransmitted: 0 },
}

/** A live stream with a viewer, a stream with warnings, a rejected encoder and a refused API request. */
async function occupy(t: Test, { server, url }: TestService): Promise<void> {
  const { srtUrl, playlistUrl } = await server.startStream({ streamId: 'studio' })
  publishDemo(t, srtUrl)
  await until('a live stream', () => server.status('studio').live)
  await (await fetch(playlistUrl)).text()

  await server.startStream({ streamId: 'noise' })
  const publication = server.findStream('noise')!.publish({
    get lastPacketUs() {
      return systemClock.nowUs()
    },
    report: () => ({ ...PUBLISHER_REPORT, lines: [LINE] }),
    close: () => undefined,
  })
  const send = setInterval(() => publication.push(randomBytes(1316)), 20)
  t.teardown(() => clearInterval(send))
  await until('a warning', () => server.status('noise').warnings.length > 0)

  const wrong = publish({ file: CLIP, url: srtUrl.replace('rid=studio', 'rid=other') })
  await t.rejects(wrong, { code: 'SRT_REJECTED' })
  t.equal((await fetch(`${url}/api/streams`, { method: 'POST' })).status, 400)
}

t.test('promtool finds nothing to complain about', async (t) => {
  if (!requireTool(t, 'promtool')) return
  for (const perStream of ['always', 'never'] as const) {
    const token = randomBytes(32).toString('hex')
    const service = await startService(t, { metrics: { token, perStream } })
    await occupy(t, service)
    const authorization = `Bearer ${token}`
    const reply = await fetch(`${service.url}/metrics`, { headers: { authorization } })
    t.equal(reply.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    const input = await reply.text()
    t.match(input, /^millrace_hls_sent_bytes_total\{.*kind="playlist"\} \d+$/m)
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input,
      encoding: 'utf8',
    })
    t.strictSame({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' }, perStream)
  }
})

t.test('deploy/alerts.yaml has valid rules, over metrics that the service has', async (t) => {
  if (!requireTool(t, 'promtool')) return
  const path = fileURLToPath(new URL('deploy/alerts.yaml', ROOT))
  const { status, stderr } = spawnSync('promtool', ['check', 'rules', path], { encoding: 'utf8' })
  t.strictSame({ status, stderr }, { status: 0, stderr: '' })
  const names = readFileSync(path, 'utf8').match(/millrace_\w+/g) ?? []
  const families: { name: string }[] = [...SERVICE_FAMILIES, ...STREAM_FAMILIES]
  t.ok(names.length > 0)
  t.strictSame(
    names.filter((name) => !families.some((family) => family.name === name)),
    [],
  )
})

t.test(
  'Prometheus scrapes the service, and each query of the dashboard has a result',
  async (t) => {
    if (!requireTool(t, 'prometheus')) return
    const port = await freePort()
    const token = randomBytes(32).toString('hex')
    const srtla = { port: await freePort() }
    const service = await startService(t, { metrics: { port, token }, srtla })
    const prometheus = await startPrometheus(t, { port, token })
    await occupy(t, service)
    t.ok(EXPRESSIONS.length > 30, 'the dashboard has queries')
    for (const { title, expression } of EXPRESSIONS.filter((each) => !isOfCluster(each))) {
      await until(
        `${title}: ${expression}`,
        async () => (await prometheus.query(expression)).length > 0,
        { everyMs: 250 },
      ).catch((error: unknown) => t.fail(String(error)))
    }
    const [rejects] = await prometheus.query('millrace_rejects_total')
    t.match(rejects, { metric: { reason: 'STREAM_KEY_MISMATCH' }, value: [Number, '1'] })

    await service.server.stopStream('studio')
    const states = await until('a stopped stream', async () => {
      const samples = await prometheus.query('millrace_streams == 1')
      return samples.some(({ metric }) => metric['state'] === 'STOPPED') && samples
    })
    t.equal(states.length, 2, 'the other one streams')
  },
)
