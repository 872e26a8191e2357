/**
 * Reject codes, which take the place of the handshake type in a rejection (draft-sharabayko-srt 3.2.1, Table 7): 1000 plus
 * the code of libsrt.
 *
 *   1000 to 1999   of the protocol
 *   2000 to 2999   predefined for access control, mostly 2000 plus an HTTP status (libsrt `srtcore/access_control.h`)
 *   3000 and more  free for applications
 *
 * @module
 */

/** Reasons for which an SRT listener rejects a caller (SRT 3.2.1.1, and 2000 and above as applications use them). */
export const RejectCode = {
  UNKNOWN: 1000,
  SYSTEM: 1001,
  PEER: 1002,
  RESOURCE: 1003,
  ROGUE: 1004,
  BACKLOG: 1005,
  INTERNAL: 1006,
  CLOSE: 1007,
  VERSION: 1008,
  RENDEZVOUS_COOKIE: 1009,
  BADSECRET: 1010,
  UNSECURE: 1011,
  MESSAGEAPI: 1012,
  CONGESTION: 1013,
  FILTER: 1014,
  GROUP: 1015,
  TIMEOUT: 1016,
  CRYPTO: 1017,
  /** Access control: too many requests, or too much load: try again later (libsrt `SRT_REJX_OVERLOAD`). */
  OVERLOAD: 2402,
  /** Access control: access is forbidden (libsrt `SRT_REJX_FORBIDDEN`). */
  FORBIDDEN: 2403,
  /** Access control: the resource is already in use (libsrt `SRT_REJX_CONFLICT`). */
  CONFLICT: 2409,
} as const

/** A value of `RejectCode`. */
export type RejectCode = (typeof RejectCode)[keyof typeof RejectCode]
