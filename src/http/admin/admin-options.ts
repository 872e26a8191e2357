/**
 * Options of the dashboard.
 *
 * @module
 */
import type { Clock } from '../../clock.ts'
import type { PlaybackSource, StreamControl } from '../../contract/streams.ts'
import type { Logger } from '../../logger.ts'
import type { WatchedStream } from './history.ts'

/** What the service adds to the options of the API. */
export interface DashboardOptions {
  /** The password now. */
  readonly readPassword: () => string
  /** Streams with an encoder, for the graphs. */
  readonly listPublished: () => readonly WatchedStream[]
  /** Streams of this process. */
  readonly source: PlaybackSource
  /** Streams of all nodes; those of others, whether they exist or not, are asked for when a file is read. */
  readonly allStreams: PlaybackSource
}

export interface AdminOptions extends DashboardOptions {
  readonly control: StreamControl
  readonly clock: Clock
  /** Receives the audit log; undefined: there is none. */
  readonly auditLogger?: Logger | undefined
}
