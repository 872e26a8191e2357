/**
 * Messages between the supervisor and its child processes, over the IPC channel.
 *
 * @module
 */
import type { Config } from '../../config/schema.ts'
import type { ErrorCode } from '../../errors.ts'

/** Commands of the program that run the children. */
export const INGEST_COMMAND = 'ingest-process'
export const WORKER_COMMAND = 'worker-process'

/** Settings of a child and its place. */
export interface ChildOptions {
  /** For log lines. */
  readonly name: string
  readonly config: Config
  /** Unix socket between the ingest process and the workers. */
  readonly socketPath: string
}

/** Message to a child. */
export type Order =
  | { readonly type: 'start'; readonly options: ChildOptions }
  /** All processes serve: the ingest process tells the log and webhooks. */
  | { readonly type: 'announce' }
  | { readonly type: 'reload'; readonly config: Config }
  /** See `Server.drain`. */
  | { readonly type: 'drain' }
  /** Close, and let replies go on for `drainMs` before that. */
  | { readonly type: 'stop'; readonly drainMs: number }
  /** Close the ports and nothing else, see `Server.abandon`. */
  | { readonly type: 'abandon' }

/** Message from a child. */
export type ChildNotice =
  /** The first one: from now on the process takes orders. */
  | { readonly type: 'loaded' }
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'reloaded' }
  /** Nothing has changed. */
  | { readonly type: 'refused'; readonly failure: Failure }

export interface Failure {
  /** Undefined: no error for users. */
  readonly code?: ErrorCode
  readonly message: string
}
