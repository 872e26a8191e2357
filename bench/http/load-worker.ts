/**
 * Worker with a load generator that runs in Node.
 *
 * @module
 */
import { once } from 'node:events'
import { connect, type ClientHttp2Session } from 'node:http2'
import autocannon from 'autocannon'
import { quantile } from '../support/quantile.ts'
import { answer, readTask } from '../support/worker.ts'
import type { LoadResult, LoadTask, LoadWorkerAnswers } from './load.ts'

/** Flow control window of a connection and of each stream; browsers offer as much. */
const WINDOW_BYTES = 6 * 2 ** 20

const task = (await readTask()) as LoadTask
const { url, headers, connections, seconds, rate, status } = task

answer<LoadWorkerAnswers>({ autocannon: runAutocannon, http2: runHttp2 })

async function runAutocannon(): Promise<LoadResult> {
  const result = await autocannon({
    ...{ url, headers, connections, duration: seconds },
    ...(rate !== undefined && { overallRate: rate }),
  })
  const { [String(status)]: expected } = result.statusCodeStats as Record<string, { count: number }>
  return {
    replies: result.requests.total,
    repliesPerSec: result.requests.total / result.duration,
    bytesPerSec: result.throughput.total / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failures: result.requests.total - (expected?.count ?? 0) + result.errors + result.timeouts,
  }
}

/** One request at a time on each connection. */
async function runHttp2(): Promise<LoadResult> {
  const { origin, pathname } = new URL(url)
  const sessions = await Promise.all(
    Array.from({ length: connections }, async () => {
      const session = connect(origin, {
        rejectUnauthorized: false,
        settings: { initialWindowSize: WINDOW_BYTES },
      })
      await once(session, 'connect')
      session.setLocalWindowSize(WINDOW_BYTES)
      return session
    }),
  )
  const delaysMs: number[] = []
  let [bytes, failures] = [0, 0]
  const startMs = performance.now()
  const endMs = startMs + seconds * 1000
  const run = async (session: ClientHttp2Session) => {
    while (performance.now() < endMs) {
      const sentMs = performance.now()
      const stream = session.request({ ...headers, ':path': pathname })
      stream.once('response', ({ ':status': got }) => {
        if (got !== status) failures++
      })
      stream.on('data', (piece: Buffer) => {
        bytes += piece.length
      })
      await once(stream, 'close')
      delaysMs.push(performance.now() - sentMs)
    }
    session.destroy()
  }
  await Promise.all(sessions.map(run))
  const elapsedSec = (performance.now() - startMs) / 1000
  const sorted = delaysMs.toSorted((a, b) => a - b)
  return {
    replies: sorted.length,
    repliesPerSec: sorted.length / elapsedSec,
    bytesPerSec: bytes / elapsedSec,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    failures,
  }
}
