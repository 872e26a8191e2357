/**
 * Streams that other nodes own, for the viewers of this one: an edge within the node.
 *
 * @module
 */
import type { FastifyInstance } from 'fastify'
import { Edge } from '../edge/edge.ts'
import type { NodeClient } from '../edge/node-client.ts'
import type { OwnerLookup } from '../edge/stream-origin.ts'
import { createRelay } from '../edge/relay.ts'
import { OwnerReports } from '../edge/owner-reports.ts'
import type { Logger } from '../../logger.ts'
import type { PassState, RemoteStreams } from '../../playback/remote-streams.ts'

interface ClusterPlaybackOptions {
  readonly owners: OwnerLookup
  readonly client: NodeClient
  /** Reads the URL of this node. */
  readonly readUrl: () => string
  /** Maximum size of media in memory. */
  readonly maxBytes: number
  /** See `EdgeOptions`. */
  readonly readPlaybackSecrets: () => readonly string[]
  readonly logger: Pick<Logger, 'warn'>
}

/** Interval at which the audience is taken. */
const REPORT_MS = 1000

export class ClusterPlayback implements RemoteStreams {
  readonly #edge: Edge
  readonly #client: NodeClient
  readonly #reports: OwnerReports
  readonly #reporter: NodeJS.Timeout

  constructor({ readUrl, logger, ...options }: ClusterPlaybackOptions) {
    this.#client = options.client
    this.#edge = new Edge(options)
    const parts = { edge: this.#edge, client: this.#client }
    const onRefused = (message: string) => logger.warn(message)
    this.#reports = new OwnerReports({ ...parts, readName: readUrl, onRefused })
    this.#reporter = setInterval(() => this.#reports.send(this.#edge.audience.take()), REPORT_MS)
  }

  get open() {
    return this.#edge.open
  }

  get protected() {
    return this.#edge.protected
  }

  get isKnown() {
    return this.#edge.isKnown
  }

  /** See `Edge.memory`. */
  get memory() {
    return this.#edge.memory
  }

  /** Counts viewers of a worker, see `StreamAudience`. */
  countViewers(streamId: string, viewers: readonly number[]): void {
    for (const viewer of viewers) this.#edge.audience.addHash(streamId, viewer)
  }

  passState(app: FastifyInstance): PassState {
    const send = createRelay(app)
    return (request, reply, streamId) =>
      send(request, reply, async (passed) =>
        this.#client.pass(await this.#edge.findOwner(streamId), passed),
      )
  }

  /** Ends its timers. The client stays open. */
  close(): void {
    clearInterval(this.#reporter)
    this.#edge.close()
  }
}
