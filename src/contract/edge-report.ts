/**
 * What a worker tells the ingest process about its clients, once a second.
 *
 * @module
 */
import type { HttpReport } from './service-report.ts'

export interface EdgeReport {
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
  /** Hashes of viewers, see `ViewerIdentity`; the same viewer has the same hash at all workers. */
  readonly viewers: readonly number[]
}
