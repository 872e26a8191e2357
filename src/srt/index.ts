/**
 * SRT for live ingest, in pure TypeScript: `createListener` accepts callers, `connect` calls a listener.
 *
 * @module millrace/srt
 */
export { Caller, connect, type ConnectOptions } from './io/caller.ts'
export { createListener, Listener, type ListenerOptions } from './io/listener.ts'
export { parseSrtUrl, type SrtUrl } from './io/srt-url.ts'
export { SrtError, type SrtErrorCode } from './srt-error.ts'
export type { LineStats, ListenerStats, SenderStats, SrtlaStats, SrtStats } from './stats.ts'
export type {
  AcceptDecision,
  CloseReason,
  ConnectionRequest,
  Elsewhere,
  MovedCaller,
  PayloadSink,
  SrtConnection,
} from './types.ts'
export type { Clock } from '../timing/clock.ts'
export type { KeyBytes } from './wire/key-material.ts'
export {
  isPassphrase,
  MAX_LATENCY_MS,
  MAX_PASSPHRASE_BYTES,
  MAX_STREAM_ID_BYTES,
  MIN_PASSPHRASE_BYTES,
} from './wire/limits.ts'
export { RejectCode } from './wire/reject-code.ts'
