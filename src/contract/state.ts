/**
 * States of a stream. READY: key issued, no encoder yet. STREAMING: an encoder is connected. INTERRUPTED: the encoder
 * disconnected, or has sent no audio or video for 10 s; new media resumes the same playlist. STOPPED: ended; the id may
 * be started again.
 *
 * @module
 */

export type StreamState = 'READY' | 'STREAMING' | 'INTERRUPTED' | 'STOPPED'

/** Reason for the state STOPPED. */
export type StopReason = 'api' | 'grace-expired' | 'key-expired' | 'shutdown'
