/**
 * SRT for live ingest, in pure TypeScript: `createListener` accepts callers, `connect` calls a listener.
 *
 * @module
 */
export { Caller, connect, type ConnectOptions } from './io/caller.ts'
export { isPassphrase } from './crypto/key-encryption.ts'
export { createListener, Listener, type ListenerOptions } from './io/listener.ts'
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
