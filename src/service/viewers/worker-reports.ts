/**
 * Reports of workers, which serve the viewers in place of this process: once a second, over the Unix socket that they
 * share with it.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { MillraceError } from '../../errors.ts'
import { readBodies } from '../../http/body-reader.ts'
import { NO_COUNTERS, type HttpReport } from '../../http/guard/http-report.ts'

export interface WorkerReport {
  /** Differs from that of every other worker, those of the past included. */
  readonly worker: string
  readonly http: HttpReport
  /** By stream id; streams without requests since the last report are absent. */
  readonly streams: Readonly<Record<string, StreamAudience>>
}

/** Requests for one stream since the last report. */
export interface StreamAudience {
  /** Bytes sent to viewers, by the name of the file. */
  readonly sentBytes: Readonly<Record<string, number>>
  /** See `hashOfViewer`. */
  readonly viewers: readonly number[]
}

/** Maximum size of a report: each viewer takes some 20 bytes. */
const MAX_BYTES = 8 * 1024 * 1024

/** Path of the route. */
export const WORKER_REPORTS = '/edge-reports'

/** Fastify plugin: `POST /edge-reports` with a `WorkerReport`. Never register it on a port: reports are believed. */
export const workerReports: FastifyPluginAsync<{
  readonly onReport: (report: WorkerReport) => void
}> = async (app, { onReport }) => {
  app.addHook('onRequest', async ({ headers }) => {
    // A worker names the client of every request that it passes on.
    if ('x-forwarded-for' in headers) throw new MillraceError('ROUTE_NOT_FOUND')
  })
  readBodies(app, (bytes) => JSON.parse(bytes.toString()) as unknown, MAX_BYTES)
  app.post(WORKER_REPORTS, async ({ body }, reply) => {
    onReport(body as WorkerReport)
    return reply.code(204).send()
  })
}

/** Time after which a worker without a report counts as dead. */
const MAX_SILENCE_US = 5 * 1_000_000

/** Figures that are not counters. */
const NOW = { connections: 0, bufferedBytes: 0 }

export const NO_CLIENTS: HttpReport = { ...NOW, ...NO_COUNTERS }

/** Maximum number of workers whose counters are kept apart, oldest first out. */
const MAX_KNOWN = 1000

/** HTTP clients of all workers. Input: `push` each report. Query: `http`. */
export class WorkerTotals {
  /** Latest reports, the oldest first: of dead workers too, since one that was only silent goes on with its counters. */
  readonly #latest = new Map<string, { readonly http: HttpReport; readonly atUs: number }>()
  /** Counters of workers that are not known any more. */
  #past = NO_CLIENTS

  push({ worker, http }: WorkerReport, nowUs: number): void {
    this.#latest.delete(worker)
    this.#latest.set(worker, { http, atUs: nowUs })
    const [[oldest, forgotten] = [worker, undefined]] = this.#latest
    if (this.#latest.size <= MAX_KNOWN || forgotten === undefined) return
    this.#latest.delete(oldest)
    this.#past = addReports(this.#past, { ...forgotten.http, ...NOW })
  }

  /** Connections and memory of the workers now, and counters of all so far. */
  http(nowUs: number): HttpReport {
    const reports = [...this.#latest.values()].map(({ http, atUs }) =>
      nowUs - atUs <= MAX_SILENCE_US ? http : { ...http, ...NOW },
    )
    return reports.reduce(addReports, this.#past)
  }
}

export function addReports(a: HttpReport, b: HttpReport): HttpReport {
  const names = Object.keys(a) as (keyof HttpReport)[]
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as {
    [Name in keyof HttpReport]: number
  }
}
