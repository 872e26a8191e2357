/**
 * Periods that both halves of a connection share. Machines compare them with the time passed to them; the only timer is
 * the tick of their driver.
 *
 * @module
 */

/** Interval of ticks, and the period of full ACKs (draft-sharabayko-srt 4.8.1). */
export const TICK_MS = 10

/** Shortest interval between two NAKs for the same packet (draft 4.8.2), and between two responses to them. */
export const MIN_NAK_INTERVAL_US = 20_000
