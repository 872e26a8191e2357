/**
 * Viewers of an edge, as it tells the nodes that own their streams.
 *
 * @module
 */
import type { EdgeReport } from '../contract/edge-report.ts'
import type { Edge } from './edge.ts'
import type { NodeClient } from './node-client.ts'

/** Name of the call, see `NodeRoutes`. */
export const VIEWERS = 'viewers'

/** Body of the call: hashes of viewers by stream id, see `StreamAudience`. */
export type ViewerReport = Readonly<Record<string, readonly number[]>>

/** Maximum size of a body, and sizes of a hash and of what surrounds an id in it: the viewers of one stream always fit. */
const MAX_BODY_BYTES = 60_000
const HASH_BYTES = 12
const ENTRY_BYTES = 6

/** Time limit of a call: one silent owner must not keep the others from their reports. */
const CALL_MS = 2000

export interface ViewerCallsOptions {
  readonly edge: Pick<Edge, 'findOwner'>
  /** Signs its requests. */
  readonly client: Pick<NodeClient, 'post'>
}

/** Input: `send` what `Audience.take` returns. */
export class ViewerCalls {
  readonly #options: ViewerCallsOptions
  #sending: Promise<void> | undefined

  constructor(options: ViewerCallsOptions) {
    this.#options = options
  }

  /** What cannot be sent is lost: viewers who stay are in a later report. */
  send(streams: EdgeReport['streams']): void {
    const watched = Object.entries(streams).filter(([, { viewers }]) => viewers.length > 0)
    if (watched.length === 0 || this.#sending !== undefined) return
    this.#sending = this.#send(watched).finally(() => (this.#sending = undefined))
  }

  async #send(watched: readonly (readonly [string, { viewers: readonly number[] }])[]) {
    const byOwner = new Map<string, [string, readonly number[]][]>()
    for (const [streamId, { viewers }] of watched) {
      const owner = await this.#options.edge.findOwner(streamId).catch(() => undefined)
      if (owner === undefined) continue
      const streams = byOwner.get(owner) ?? []
      byOwner.set(owner, streams)
      streams.push([streamId, viewers])
    }
    await Promise.all([...byOwner].map(([owner, streams]) => this.#tell(owner, streams)))
  }

  async #tell(owner: string, streams: readonly [string, readonly number[]][]): Promise<void> {
    try {
      for (const report of reportsOf(streams)) {
        const body = Buffer.from(JSON.stringify(report))
        const signal = AbortSignal.timeout(CALL_MS)
        await this.#options.client.post(owner, `/node/${VIEWERS}`, body, signal)
      }
    } catch {
      // Viewers who stay are in a later report.
    }
  }
}

/** Reports that a node takes: one, unless there are many viewers. */
export function* reportsOf(
  streams: readonly [string, readonly number[]][],
): Generator<ViewerReport> {
  let report: Record<string, readonly number[]> = {}
  let sizeBytes = 0
  for (const [streamId, viewers] of streams) {
    const addedBytes = streamId.length + ENTRY_BYTES + viewers.length * HASH_BYTES
    if (sizeBytes > 0 && sizeBytes + addedBytes > MAX_BODY_BYTES) {
      yield report
      report = {}
      sizeBytes = 0
    }
    report[streamId] = viewers
    sizeBytes += addedBytes
  }
  if (sizeBytes > 0) yield report
}
