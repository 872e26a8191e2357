/**
 * The states of a stream. READY: key issued, no encoder yet. STREAMING: an encoder is connected. INTERRUPTED: the
 * encoder is gone and may come back to the same playlist. STOPPED: over; the id may be started anew.
 *
 * @module
 */

export type StreamState = 'READY' | 'STREAMING' | 'INTERRUPTED' | 'STOPPED'

/** Why a stream became STOPPED. */
export type StopReason = 'api' | 'grace-expired' | 'key-expired' | 'shutdown'
