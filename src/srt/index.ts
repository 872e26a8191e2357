/**
 * SRT for live ingest, in pure TypeScript: `createListener` accepts callers, `connect` calls a listener.
 *
 * @module
 */
export { Caller, connect, type ConnectOptions } from './caller.ts'
export { isPassphrase } from './key-encryption.ts'
export { createListener, Listener, type ListenerOptions } from './listener.ts'
export type {
  AcceptDecision,
  CloseReason,
  ConnectionRequest,
  ListenerStats,
  PayloadSink,
  SenderStats,
  SrtConnection,
  SrtStats,
} from './types.ts'
export type { KeyBytes } from './wire/key-material.ts'
