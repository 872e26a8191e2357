import t from 'tap'
import type { EdgeReport } from '../../src/contract/edge-report.ts'
import { NO_CLIENTS } from '../../src/service/edge-reports.ts'
import { call, startApp } from './memory-service.ts'

t.test('takes the report of a worker with as many viewers as it has connections', async (t) => {
  const reports: EdgeReport[] = []
  const onEdgeReport = (report: EdgeReport) => void reports.push(report)
  const app = await startApp(t, undefined, {}, undefined, { onEdgeReport })
  const viewers = Array.from({ length: 10_000 }, (_, index) => 2 ** 52 + index)
  const streams = { demo: { sentBytes: { 'a-7.ts': 1 }, viewers } }
  const body = JSON.stringify({ worker: 1, http: NO_CLIENTS, streams })
  t.equal((await call(app, 'POST', '/edge-reports', { body })).status, 204)
  t.strictSame(reports, [JSON.parse(body)])
  const headers = { 'x-forwarded-for': '192.0.2.1' }
  t.equal((await call(app, 'POST', '/edge-reports', { body, headers })).status, 404, 'of a client')
  t.equal(reports.length, 1)
})
