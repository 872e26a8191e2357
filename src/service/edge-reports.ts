/**
 * Clients of all workers, from their reports.
 *
 * @module
 */
import type { EdgeReport } from '../contract/edge-report.ts'
import { NO_COUNTERS, type HttpReport } from '../contract/service-report.ts'

/** Time after which a worker without a report counts as dead. */
const MAX_SILENCE_US = 5 * 1_000_000

/** Figures that are not counters. */
const NOW = { connections: 0, bufferedBytes: 0 }

export const NO_CLIENTS: HttpReport = { ...NOW, ...NO_COUNTERS }

/** Maximum number of workers whose counters are kept apart, oldest first out. */
const MAX_KNOWN = 1000

/** Input: `push` each report. Query: `http`. */
export class EdgeReports {
  /** Latest reports, the oldest first: of dead workers too, since one that was only silent goes on with its counters. */
  readonly #latest = new Map<string, { readonly http: HttpReport; readonly atUs: number }>()
  /** Counters of workers that are not known any more. */
  #past = NO_CLIENTS

  push({ worker, http }: EdgeReport, nowUs: number): void {
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
