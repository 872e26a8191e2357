/**
 * Every period of the protocol. Machines compare them with the time they are given; the one timer that exists is the
 * tick of whoever drives them.
 *
 * @module
 */

/** How often a machine is told the time: the period of full ACKs (draft-sharabayko-srt 4.8.1). */
export const TICK_MS = 10

/** Connections with nothing under way are looked at this often. */
export const IDLE_CHECK_US = 250_000

/** A handshake without an answer is repeated after this time (libsrt; the draft leaves it open). */
export const HANDSHAKE_RETRY_US = 250_000

/** A side that sent nothing for this long sends a keepalive (draft 3.2.3). */
export const KEEPALIVE_US = 1_000_000

/** A lower bound for periodic NAK reports (draft 4.8.2). */
export const MIN_NAK_INTERVAL_US = 20_000

/** How long the identity of a closed connection stays taken, so that no late packet brings it back. */
export const TOMBSTONE_US = 3_000_000
