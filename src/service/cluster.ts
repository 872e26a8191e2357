/**
 * The cluster, as a node's service sees it: all that the service asks of it, and what it has of the service. Without a
 * cluster the service is the same, with its own streams alone.
 *
 * @module
 */
import type { Archive } from '../archive/archive.ts'
import type { NodeCalls } from '../auth/node-calls.ts'
import type { StreamControl } from '../api/control.ts'
import type { Config } from '../config/schema.ts'
import type { FenceOf } from '../http/node-access.ts'
import type { ReadableStreams } from '../egress/reader-admission.ts'
import type { AdmissionStreams } from '../ingest/admission.ts'
import type { Logger } from '../logger.ts'
import type { RemoteStreams } from '../playback/remote-streams.ts'
import type { MovedCaller } from '../srt/types.ts'
import type { WebhookDispatcher } from '../webhook/dispatcher.ts'
import type { EventOutbox } from '../webhook/event.ts'
import type { MetricFamily } from './metrics/metric-family.ts'
import type { NodeRoutes } from './node-routes.ts'
import type { AnnounceEnd, Notifier } from './notifications.ts'
import type { PublicUrls } from './public-urls.ts'
import type { Slates } from './slates.ts'
import type { SrtCaller } from './srt-caller.ts'
import type { StreamOwner, Records } from './records.ts'
import type { Settings } from './settings-in-use.ts'
import type { Streams } from './streams.ts'

/** Calling order: `start` when the ports are open, `drain` if need be, then `handOver`, `settleEnds` and `close`, or `close` alone. */
export interface Cluster {
  /** The calls of the API, for the streams of all nodes. */
  readonly control: StreamControl
  /** Streams for admission: that of a verified key runs here once it is admitted. Readers are told where others are. */
  readonly admission: AdmissionStreams & ReadableStreams
  /** Tells another node of a caller that it takes, with which this one shares the SRT port. */
  move(node: string, caller: MovedCaller): Promise<void>
  /** Stream that has a port to itself. @throws {MillraceError} `REGISTRY_UNAVAILABLE` */
  ownerOf(port: number): Promise<string | undefined>
  /** Streams of other nodes, for the viewers of this one. */
  readonly playback: RemoteStreams
  /** Keeps webhooks for other nodes, which deliver them if this one ends before. */
  readonly outbox: EventOutbox
  /** Announces the end of a stream once the registry knows of it. @returns false unless this node owns the stream */
  readonly announceEnd: AnnounceEnd
  /** Describes this node as the owner of a stream, in its record. */
  readonly ownershipOf: (streamId: string) => StreamOwner
  readonly fenceOf: FenceOf
  /** Calls of other nodes at this one. */
  readonly routes: NodeRoutes
  readonly metrics: readonly MetricFamily<void>[]
  /** Whether other nodes go on when this one closes, and take what it has. */
  readonly othersGoOn: boolean
  /** Whether new encoders and streams are refused, since this node goes away. */
  readonly isDraining: boolean
  /** @param url  at which other nodes reach this one */
  start(url: string): void
  /** Sends the encoders to other nodes one after the other, and takes none any more. */
  drain(): Promise<void>
  /**
   * Drains, then leaves what it still has to other nodes, which go on with the streams at once; where all nodes close, it
   * only takes no more.
   *
   * @param limitMs  time in which all encoders are sent away
   */
  handOver(limitMs: number): Promise<void>
  /** Settles when the registry knows of the streams that have ended here, and their webhooks are queued, or in vain. */
  settleEnds(): Promise<void>
  /** @returns what those of the other ingest nodes have answered that did so in time */
  callOthers(call: string, timeoutMs: number): Promise<unknown[]>
  /** Settles when no timer or socket of the cluster is left. */
  close(): Promise<void>
}

/** Service of one node, for its cluster. */
export interface LocalService {
  readonly config: Config
  readonly logger: Logger
  readonly settings: Settings
  /** See `Listener.expect`. */
  readonly expectCaller: (caller: MovedCaller) => void
  /** Signs and verifies calls between nodes. */
  readonly calls: NodeCalls
  readonly streams: Streams
  readonly records: Records
  readonly notifier: Notifier
  readonly webhooks: WebhookDispatcher
  readonly urls: PublicUrls
  readonly slates: Slates
  readonly srtCaller: SrtCaller
  /** Undefined without one. */
  readonly archive: Archive | undefined
  /** Reads the values of `PLAYBACK_SECRET`; empty: playback is public. */
  readonly readPlaybackSecrets: () => readonly string[]
}

/** Makes a node of the service; begins to connect to the cluster. */
export type JoinCluster = (service: LocalService) => Cluster
