/**
 * Reports of an edge to the nodes that own its streams: its viewers, and how far it has come.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { EDGE_REPORT, type EdgeReport } from '../../service/viewers/edges.ts'
import type { StreamAudience, WorkerReport } from '../../service/viewers/worker-reports.ts'
import type { Edge } from './edge.ts'
import type { NodeClient } from './node-client.ts'

type ReadStream = EdgeReport['streams'][string]

/** Maximum size of a body, and sizes of a hash and of what surrounds those of a stream: the viewers of one always fit. */
const MAX_BODY_BYTES = 60_000
const HASH_BYTES = 12
const STREAM_BYTES = 250

/** Time limit of a call: one silent owner must not keep the others from their reports. */
const CALL_MS = 2000

/** Maximum number of owners whose status is known. */
const MAX_OWNERS = 1024

interface OwnerReportsOptions {
  readonly edge: Pick<Edge, 'findOwner' | 'newest'>
  /** Reads the name of the edge in its reports. */
  readonly readName: () => string
  /** Signs its requests. */
  readonly client: Pick<NodeClient, 'post'>
  /** Called when a node takes no reports, or gives another reason for it, with words for the operator. */
  readonly onRefused: (message: string) => void
}

type Entry = readonly [streamId: string, stream: ReadStream]

/** Input: `send` what `Audience.take` returns. */
export class OwnerReports {
  readonly #options: OwnerReportsOptions
  #sending: Promise<void> | undefined
  /** Status of the latest report by owner. */
  readonly #statuses = new LRUCache<string, number>({ max: MAX_OWNERS })

  constructor(options: OwnerReportsOptions) {
    this.#options = options
  }

  /** A report that cannot be sent is lost: viewers who stay are in a later one. */
  send(streams: WorkerReport['streams']): void {
    const watched = Object.entries(streams).filter(([, { viewers }]) => viewers.length > 0)
    if (watched.length === 0 || this.#sending !== undefined) return
    this.#sending = this.#send(watched).finally(() => (this.#sending = undefined))
  }

  async #send(watched: readonly (readonly [string, StreamAudience])[]) {
    const { edge } = this.#options
    const byOwner = new Map<string, Entry[]>()
    for (const [streamId, { viewers }] of watched) {
      const owner = await edge.findOwner(streamId).catch(() => undefined)
      if (owner === undefined) continue
      const newest = edge.newest(streamId)
      const entries = byOwner.get(owner) ?? []
      byOwner.set(owner, entries)
      entries.push([streamId, { viewers: [...viewers], ...(newest && { newest }) }])
    }
    await Promise.all([...byOwner].map(([owner, entries]) => this.#tell(owner, entries)))
  }

  async #tell(owner: string, entries: readonly Entry[]): Promise<void> {
    const { client, readName, onRefused } = this.#options
    try {
      for (const streams of parts(entries)) {
        const report: EdgeReport = { edge: readName(), streams }
        const body = Buffer.from(JSON.stringify(report))
        const path = `/node/${EDGE_REPORT}`
        const { status } = await client.post(owner, path, body, AbortSignal.timeout(CALL_MS))
        const isNew = this.#statuses.get(owner) !== status
        this.#statuses.set(owner, status)
        if (status !== 200 && isNew)
          onRefused(`${owner} does not count viewers of this node: it answers ${status} at ${path}`)
      }
    } catch {
      // Viewers who stay are in a later report.
    }
  }
}

/** Streams by report that a node takes: one, unless there are many viewers. */
export function* parts(entries: readonly Entry[]): Generator<EdgeReport['streams']> {
  let streams: Record<string, ReadStream> = {}
  let sizeBytes = 0
  for (const [streamId, stream] of entries) {
    const addedBytes = STREAM_BYTES + stream.viewers.length * HASH_BYTES
    if (sizeBytes > 0 && sizeBytes + addedBytes > MAX_BODY_BYTES) {
      yield streams
      streams = {}
      sizeBytes = 0
    }
    streams[streamId] = stream
    sizeBytes += addedBytes
  }
  if (sizeBytes > 0) yield streams
}
