/**
 * Messages between the supervisor and its child processes, over the IPC channel.
 *
 * @module
 */
import type { Config } from '../../config/schema.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Outboxes } from '../registry/outboxes.ts'
import type { Registry } from '../registry/registry.ts'

/** Commands of the program that run the children. */
export const INGEST_COMMAND = 'ingest-process'
export const WORKER_COMMAND = 'worker-process'

/** Settings of a child and its place. */
export interface ChildOptions {
  /** For log lines. */
  readonly name: string
  readonly config: Config
  /** Unix socket between an ingest process and the others: its own, or the first one's. */
  readonly socketPath: string
  /** Whether it is an ingest process beside the first one. */
  readonly isSecondary: boolean
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
  /** Answer of the registry. */
  | {
      readonly type: 'registry'
      readonly id: number
      readonly result?: unknown
      readonly failure?: { readonly code: ErrorCode; readonly message: string }
    }
  /** Command of another node, see `node-commands.ts`. */
  | { readonly type: 'command'; readonly command: unknown }

/** Message from a child. */
export type ChildNotice =
  /** The first one: from now on the process takes orders. */
  | { readonly type: 'loaded' }
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'reloaded' }
  /** Nothing has changed. */
  | { readonly type: 'refused'; readonly failure: Failure }

export type RegistryCallName = keyof Registry | `outboxes.${keyof Outboxes}` | 'command'

/** Call of a child at the registry of the supervisor. */
export interface RegistryCall {
  readonly type: 'registry'
  readonly id: number
  readonly name: RegistryCallName
  readonly args: readonly unknown[]
}

export interface Failure {
  /** Undefined: no error for users. */
  readonly code?: ErrorCode
  readonly message: string
}
