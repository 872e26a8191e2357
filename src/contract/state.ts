/**
 * States of a stream. READY: key issued, no encoder yet. STREAMING: an encoder is connected. INTERRUPTED: the encoder is
 * gone and may return to the same playlist. STOPPED: ended; the id may be started again.
 *
 * @module
 */

export type StreamState = 'READY' | 'STREAMING' | 'INTERRUPTED' | 'STOPPED'

/** Reason of the state STOPPED. */
export type StopReason = 'api' | 'grace-expired' | 'key-expired' | 'shutdown'
