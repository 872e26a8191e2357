/**
 * Every refusal a person can meet, in one table: code -> HTTP status, SRT reject code on the wire, message.
 *
 * What the network sends wrong is no error but a counted drop; see the `stats` of each layer.
 *
 * @module
 */

/** Reject codes as they travel in the handshake type field (draft-sharabayko-srt, Table 7; libsrt adds 1000 and 2000). */
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
  /** Access control: more was asked for than is granted (libsrt `SRT_REJX_OVERLOAD`). */
  OVERLOAD: 2402,
  /** Access control: the resource is already in use (libsrt `SRT_REJX_CONFLICT`). */
  CONFLICT: 2409,
} as const

export type RejectCode = (typeof RejectCode)[keyof typeof RejectCode]

interface Refusal {
  readonly message: string
  /** HTTP status where the refusal can meet an HTTP client. */
  readonly http?: number
  /** SRT reject code where it can meet an encoder. */
  readonly srt?: RejectCode
}

const REFUSALS = {
  SIGNATURE_MISSING: { http: 400, message: 'Missing Header for Verification!' },
  SIGNATURE_INVALID: { http: 403, message: 'Invalid Request' },
  CONTENT_TYPE_UNSUPPORTED: { http: 415, message: 'Content-Type must be application/json' },
  BODY_TOO_LARGE: { http: 413, message: 'the request body may hold at most 65536 bytes' },
  TOO_MANY_BODIES: {
    http: 503,
    message: 'too many large request bodies are on their way: try again in 10 s',
  },
  BODY_INVALID: { http: 400, message: 'the request body is not what this call takes' },
  REQUEST_EXPIRED: { http: 403, message: 'issued_at lies too far from now' },
  STREAM_NOT_FOUND: { http: 404, srt: RejectCode.BADSECRET, message: 'no such stream' },
  TOO_MANY_STREAMS: {
    http: 503,
    srt: RejectCode.RESOURCE,
    message: 'the service runs MAX_STREAMS streams: stop some, or set it higher',
  },
  FILE_NOT_FOUND: { http: 404, message: 'no such file' },
  RANGE_NOT_SATISFIABLE: { http: 416, message: 'the range lies outside the file' },
  REQUEST_MALFORMED: { http: 400, message: 'the HTTP request is malformed' },
  ROUTE_NOT_FOUND: { http: 404, message: 'no such route' },
  TOO_MANY_HTTP_CONNECTIONS: { http: 503, message: 'too many connections: try again in 5 s' },
  INTERNAL: { http: 500, message: 'internal error' },
  SHUTTING_DOWN: { http: 503, srt: RejectCode.CLOSE, message: 'the server is shutting down' },
  STREAM_KEY_MALFORMED: {
    srt: RejectCode.BADSECRET,
    message: 'a stream key reads mode=publish,rid=<stream_id>,token=<jwt>',
  },
  STREAM_KEY_INVALID: { srt: RejectCode.BADSECRET, message: 'Token invalid' },
  STREAM_KEY_EXPIRED: { srt: RejectCode.BADSECRET, message: 'Token expired' },
  STREAM_KEY_REVOKED: { srt: RejectCode.BADSECRET, message: 'Token revoked' },
  STREAM_KEY_MISMATCH: {
    srt: RejectCode.BADSECRET,
    message: 'the token was issued for another stream_id than rid',
  },
  PASSPHRASE_WRONG: { srt: RejectCode.BADSECRET, message: 'the passphrase is another one' },
  ENCRYPTION_MISSING: {
    srt: RejectCode.UNSECURE,
    message: 'the encoder does not encrypt, but must: set its passphrase',
  },
  ENCRYPTION_UNEXPECTED: {
    srt: RejectCode.UNSECURE,
    message: 'the encoder encrypts, but no passphrase is set for it here',
  },
  STREAM_BUSY: { srt: RejectCode.CONFLICT, message: 'another encoder is publishing this stream' },
  TOO_MANY_CONNECTIONS: {
    srt: RejectCode.OVERLOAD,
    message:
      'encoders connect to this stream more than 30 times a minute: let them pause between their calls',
  },
  TOO_MANY_PUBLISHERS: {
    srt: RejectCode.RESOURCE,
    message: 'as many encoders are connected as MAX_PUBLISHERS says: stop some, or set it higher',
  },
  SRT_REJECTED: { message: 'the SRT peer refused the connection' },
  SRT_TIMEOUT: { message: 'the SRT peer did not answer' },
  SRT_CLOSED: { message: 'the SRT connection is closed' },
  USAGE: { message: 'the command line is not one that millrace understands' },
  CONFIG_INVALID: { message: 'a setting has a value it cannot take' },
  MEDIA_INVALID: { message: 'the file is no MPEG transport stream that can be published' },
  ADDRESS_IN_USE: { message: 'the address is in use' },
} as const satisfies Record<string, Refusal>

export type ErrorCode = keyof typeof REFUSALS

/** An error meant for a person. `code` is stable; `message` says what was wrong and what was expected, without secrets. */
export class MillraceError extends Error {
  readonly code: ErrorCode
  /** HTTP status of the refusal; 500 where no HTTP client was meant to meet it. */
  readonly httpStatus: number
  /** SRT reject code of the refusal. */
  readonly rejectCode: RejectCode

  /**
   * @param code  row of the table
   * @param options.message  a more exact sentence than the table's
   */
  constructor(code: ErrorCode, options: { message?: string; cause?: unknown } = {}) {
    const refusal: Refusal = REFUSALS[code]
    super(
      options.message ?? refusal.message,
      options.cause === undefined ? {} : { cause: options.cause },
    )
    this.name = 'MillraceError'
    this.code = code
    this.httpStatus = refusal.http ?? 500
    this.rejectCode = refusal.srt ?? RejectCode.UNKNOWN
  }
}
