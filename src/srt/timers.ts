/**
 * Periods shared by the sending and the receiving half of a connection. The protocol code runs no timers: it compares
 * these periods with the current time that its caller passes.
 *
 * @module
 */

/** Interval of ticks, and the period of full ACKs (draft-sharabayko-srt 4.8.1). */
export const TICK_MS = 10

/** Min interval between two NAKs for the same packet (draft 4.8.2), and between two responses to such NAKs. */
export const MIN_NAK_INTERVAL_US = 20_000
