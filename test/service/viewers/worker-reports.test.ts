/**
 * Figures of workers, as the ingest process adds them up.
 */
import t from 'tap'
import {
  NO_CLIENTS,
  WorkerTotals,
  type WorkerReport,
} from '../../../src/service/viewers/worker-reports.ts'
import { call, startApp } from '../../http/memory-service.ts'

const SEC = 1_000_000

t.test('adds connections and counters of all workers', async (t) => {
  const reports = new WorkerTotals()
  const report = (worker: string, connections: number, refused: number) =>
    reports.push({ worker, http: { ...NO_CLIENTS, connections, refused }, streams: {} }, 0)
  t.strictSame(reports.http(0), NO_CLIENTS)
  report('1', 10, 3)
  report('2', 5, 1)
  t.match(reports.http(SEC), { connections: 15, refused: 4 })
  report('1', 8, 4)
  t.match(reports.http(SEC), { connections: 13, refused: 5 })
})

t.test(
  'keeps the counters of a worker that died, and forgets its connections after 5 s',
  async (t) => {
    const reports = new WorkerTotals()
    const http = { ...NO_CLIENTS, connections: 10, bufferedBytes: 100, slow: 3 }
    reports.push({ worker: '1', http, streams: {} }, 0)
    t.match(reports.http(5 * SEC), { connections: 10, slow: 3 })
    t.strictSame(reports.http(5 * SEC + 1), { ...NO_CLIENTS, slow: 3 })
    reports.push({ worker: '2', http: { ...NO_CLIENTS, slow: 1 }, streams: {} }, 6 * SEC)
    t.match(reports.http(6 * SEC), { connections: 0, slow: 4 })
  },
)

t.test('counts a worker that was silent and comes back once', async (t) => {
  const reports = new WorkerTotals()
  const push = (slow: number, atSec: number) => {
    const http = { ...NO_CLIENTS, connections: 10, slow }
    reports.push({ worker: '1', http, streams: {} }, atSec * SEC)
  }
  push(3, 0)
  t.match(reports.http(60 * SEC), { connections: 0, slow: 3 })
  push(5, 61)
  t.match(reports.http(61 * SEC), { connections: 10, slow: 5 })
})

t.test('keeps the counters of any number of workers', async (t) => {
  const reports = new WorkerTotals()
  const http = { ...NO_CLIENTS, connections: 1, refused: 1 }
  for (let worker = 0; worker < 3000; worker++) {
    reports.push({ worker: String(worker), http, streams: {} }, worker * 10 * SEC)
  }
  t.match(reports.http(30_000 * SEC), { connections: 0, refused: 3000 })
})

t.test('takes the report of a worker with as many viewers as it has connections', async (t) => {
  const reports: WorkerReport[] = []
  const onWorkerReport = (report: WorkerReport) => void reports.push(report)
  const app = await startApp(t, undefined, {}, undefined, { onWorkerReport })
  const viewers = Array.from({ length: 10_000 }, (_, index) => 2 ** 52 + index)
  const streams = { demo: { sentBytes: { 'a-7.ts': 1 }, viewers } }
  const body = JSON.stringify({ worker: 1, http: NO_CLIENTS, streams })
  t.equal((await call(app, 'POST', '/edge-reports', { body })).status, 204)
  t.strictSame(reports, [JSON.parse(body)])
  const headers = { 'x-forwarded-for': '192.0.2.1' }
  t.equal((await call(app, 'POST', '/edge-reports', { body, headers })).status, 404, 'of a client')
  t.equal(reports.length, 1)
})
