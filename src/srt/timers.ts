/**
 * Periods shared by the sending and the receiving half of a connection. The protocol code runs no timers: it compares
 * these periods with the current time that its caller passes.
 *
 * @module
 */

/** Interval of ticks: the period of full ACKs in draft-sharabayko-srt 4.8.1, though `Acknowledger` sends fewer. */
export const TICK_MS = 10

/** Min interval between two NAKs for the same packet (draft 4.8.2), and between two drop requests for it. */
export const MIN_NAK_INTERVAL_US = 20_000
