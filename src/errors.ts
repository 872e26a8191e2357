/**
 * Table of all errors for users: code -> HTTP status, SRT reject code, message.
 *
 * Bad media or packets from the network are not errors: they are dropped and counted in the `stats` of each layer.
 *
 * @module
 */
import { RejectCode } from './srt/wire/reject-code.ts'

interface Refusal {
  readonly message: string
  /** What to do, where the message is fixed and does not say it. */
  readonly hint?: string
  /** HTTP status, for refusals of HTTP clients. */
  readonly http?: number
  /** SRT reject code, for refusals of encoders. */
  readonly srt?: RejectCode
}

export const REFUSALS = {
  SIGNATURE_MISSING: {
    http: 400,
    message: 'Missing Header for Verification!',
    hint: 'send LT-SIGNATURE: hex(hmac_sha256(body, HMAC_SECRET)), with GET as well',
  },
  SIGNATURE_INVALID: {
    http: 403,
    message: 'Invalid Request',
    hint: 'LT-SIGNATURE must be hex(hmac_sha256(body, HMAC_SECRET)) of the exact bytes sent: compare the secret, spaces, and a newline at the end',
  },
  CONTENT_TYPE_UNSUPPORTED: { http: 415, message: 'Content-Type must be application/json' },
  BODY_TOO_LARGE: { http: 413, message: 'the request body may have at most 65536 bytes' },
  TOO_MANY_BODIES: {
    http: 503,
    message: 'too many large request bodies are being received: try again in 10 s',
  },
  TOO_MANY_API_REQUESTS: {
    http: 429,
    message:
      'the address sends more requests than API_RATE allows: wait as long as Retry-After says',
  },
  BODY_INVALID: { http: 400, message: 'the request body must be a JSON object with stream_id' },
  REQUEST_EXPIRED: {
    http: 403,
    message: 'issued_at is too far from now: compare the clocks, and sign each request anew',
  },
  STREAM_NOT_FOUND: { http: 404, srt: RejectCode.BADSECRET, message: 'no such stream' },
  METRICS_TOKEN_INVALID: {
    http: 401,
    message: 'expected the header Authorization: Bearer with the value of METRICS_TOKEN',
  },
  LOGIN_REQUIRED: { http: 401, message: 'the session is over or there is none: log in at /admin' },
  PASSWORD_WRONG: { http: 403, message: 'the password is wrong: enter that of ADMIN_PASSWORD' },
  TOO_MANY_LOGINS: {
    http: 429,
    message: 'too many attempts to log in: wait as long as Retry-After says',
  },
  CROSS_SITE_REQUEST: {
    http: 403,
    message:
      'the request does not come from the dashboard itself: check that the proxy forwards Host',
  },
  TOO_MANY_DASHBOARDS: {
    http: 503,
    message: 'too many dashboards are open: close some',
  },
  CHECK_RUNNING: {
    http: 503,
    message: 'another check is running: try again when it has ended',
  },
  CHECK_FAILED: {
    http: 503,
    message: 'the check ended without a result: run millrace check with the URL of the stream',
  },
  TOO_MANY_STREAMS: {
    http: 503,
    srt: RejectCode.RESOURCE,
    message: 'the service runs as many streams as MAX_STREAMS allows: stop some, or raise it',
  },
  PLAYBACK_TOKEN_MISSING: {
    http: 403,
    srt: RejectCode.BADSECRET,
    message: 'the stream needs a playback token: request /t/{token}/video/ in place of /video/',
  },
  PLAYBACK_TOKEN_INVALID: {
    http: 403,
    srt: RejectCode.BADSECRET,
    message:
      'the playback token is not valid: expected one that PLAYBACK_SECRET signed for this stream and, if it has one, this address',
  },
  PLAYBACK_TOKEN_EXPIRED: {
    http: 403,
    srt: RejectCode.BADSECRET,
    message: 'the playback token has expired: request a new one where you got it',
  },
  FILE_NOT_FOUND: { http: 404, message: 'no such file' },
  DIRECTIVES_INVALID: { http: 400, message: 'the delivery directives are malformed' },
  MEDIA_TOO_FAR_AHEAD: {
    http: 400,
    message: 'the playlist will not have that media soon: request the current playlist',
  },
  MEDIA_LATE: { http: 503, message: 'the media has not arrived in time: try again in 1 s' },
  TOO_MANY_WAITING: { http: 503, message: 'too many requests wait for media: try again in 1 s' },
  ORIGIN_UNREACHABLE: {
    http: 503,
    message: 'the origin of this edge does not answer: try again in 1 s',
  },
  REGISTRY_UNAVAILABLE: {
    http: 503,
    srt: RejectCode.OVERLOAD,
    message: 'the registry of the cluster does not answer: try again in 1 s',
  },
  NODE_CALL_INVALID: {
    http: 403,
    message:
      'the signature of the node is not valid: set the same CLUSTER_SECRET on all nodes, compare clocks',
  },
  NOT_OWNER: {
    http: 421,
    srt: RejectCode.CONFLICT,
    message: 'this node does not own the stream: look its owner up, and ask there',
  },
  RANGE_NOT_SATISFIABLE: { http: 416, message: 'the range is outside the file' },
  REQUEST_MALFORMED: { http: 400, message: 'the HTTP request is malformed' },
  ROUTE_NOT_FOUND: {
    http: 404,
    message:
      'no such route: expected a path under /api/, /health/, /video/ or /watch/, and its method',
  },
  TOO_MANY_HTTP_CONNECTIONS: { http: 503, message: 'too many connections: try again in 5 s' },
  HTTPS_REQUIRED: { http: 400, message: 'this port speaks HTTPS: use https:// in the URL' },
  INTERNAL: { http: 500, message: 'internal error: the log of the service has its cause' },
  SHUTTING_DOWN: {
    http: 503,
    srt: RejectCode.CLOSE,
    message: 'the service is shutting down: try again after its restart',
  },
  STREAM_KEY_MALFORMED: {
    srt: RejectCode.BADSECRET,
    message: 'stream key malformed: set streamid to mode=publish,rid=<stream_id>,token=<jwt>',
  },
  STREAM_KEY_INVALID: {
    srt: RejectCode.BADSECRET,
    message:
      'Token invalid: set the whole stream key that start-stream returned, and check JWT_SECRET',
  },
  // The contract with clients fixes this text, so it has no advice.
  STREAM_KEY_EXPIRED: { srt: RejectCode.BADSECRET, message: 'Token expired' },
  STREAM_KEY_REVOKED: {
    srt: RejectCode.BADSECRET,
    message: 'Token revoked: call start-stream for a new stream key, and set it in the encoder',
  },
  STREAM_KEY_MISMATCH: {
    srt: RejectCode.BADSECRET,
    message:
      'the token is for another stream than rid: set the whole stream key that start-stream returned',
  },
  PASSPHRASE_WRONG: {
    srt: RejectCode.BADSECRET,
    message: 'the passphrase is wrong: set the one that start-stream returned, or SRT_PASSPHRASE',
  },
  ENCRYPTION_MISSING: {
    srt: RejectCode.UNSECURE,
    message:
      'the encoder does not encrypt, but must: set the passphrase that start-stream returned, or SRT_PASSPHRASE',
  },
  ENCRYPTION_UNEXPECTED: {
    srt: RejectCode.UNSECURE,
    message:
      'the encoder encrypts, but its stream has no passphrase: remove it, or start the stream with encryption',
  },
  SOURCE_UNAVAILABLE: {
    http: 409,
    message: 'this encoder of the stream is not connected: see sources in its status',
  },
  ARCHIVE_NOT_FOUND: { http: 404, message: 'no such archive' },
  ARCHIVE_UNAVAILABLE: { http: 503, message: 'the store of the archive does not answer' },
  STREAM_BUSY: {
    srt: RejectCode.CONFLICT,
    message:
      'another encoder is publishing this stream: stop it, or start a stream for each encoder',
  },
  STREAM_BANNED: {
    srt: RejectCode.FORBIDDEN,
    message:
      'the encoders of this stream are banned for some time: ask its operator, or try again later',
  },
  ADDRESS_FORBIDDEN: {
    http: 403,
    srt: RejectCode.FORBIDDEN,
    message:
      'the address of the encoder is not allowed: start the stream with its CIDR block in allow_from',
  },
  TOO_MANY_CONNECTIONS: {
    srt: RejectCode.OVERLOAD,
    message:
      'encoders connect to this stream more than 30 times a minute: let them wait 2 s or more between calls',
  },
  TOO_MANY_PUBLISHERS: {
    srt: RejectCode.RESOURCE,
    message: 'as many encoders are connected as MAX_PUBLISHERS allows: stop some, or raise it',
  },
  TOO_MANY_READERS: {
    srt: RejectCode.RESOURCE,
    message:
      'as many readers are connected as SRT_MAX_READERS allows, or half as many to this stream: stop some, or raise it',
  },
  OVERLOADED: {
    srt: RejectCode.OVERLOAD,
    message: 'the service cannot read more packets: try again in 10 s, or publish to another one',
  },
  SRT_REJECTED: { message: 'the SRT peer refused the connection: its log has the reason' },
  SRT_TIMEOUT: { message: 'the SRT peer did not answer: check its address, UDP port and firewall' },
  API_CALL_FAILED: { message: 'the service has refused the call, or does not answer' },
  USAGE: { message: 'the command line is not valid: see millrace help' },
  CONFIG_INVALID: {
    message: 'a setting has a value that is not allowed: see docs/settings.md',
  },
  MEDIA_INVALID: {
    message: 'the file is not an MPEG transport stream: make one (ffmpeg -i FILE -c copy out.ts)',
  },
  RECORD_INVALID: { message: 'the folder is no record of a check: see millrace check --record' },
  PROCESS_LOST: { message: 'a process of the service ended: its log has the cause' },
  ADDRESS_IN_USE: { message: 'the address is in use: choose another port' },
} as const satisfies Record<string, Refusal>

/** Messages of `STREAM_NOT_FOUND` that say more: what to do, or what is done all the same. */
export const NO_STREAM = {
  start: 'no such stream: call start-stream before the encoder connects',
  keyRevoked: 'no such stream; the key is refused from now on',
  keysRevoked: 'no such stream; the keys issued for it so far are revoked',
} as const

/** Code of a `MillraceError`, stable; docs/api-reference.md lists them. */
export type ErrorCode = keyof typeof REFUSALS

export function isErrorCode(text: unknown): text is ErrorCode {
  return typeof text === 'string' && Object.hasOwn(REFUSALS, text)
}

/** Error for users. `code` is stable; `message` says what is wrong and what is expected, and contains no secrets. */
export class MillraceError extends Error {
  readonly code: ErrorCode
  /** What to do, where the message does not say it. */
  readonly hint: string | undefined
  /** HTTP status of the refusal; 500 for refusals that are not for HTTP clients. */
  readonly httpStatus: number
  /** SRT reject code of the refusal; `UNKNOWN` for refusals that are not for encoders. */
  readonly rejectCode: RejectCode
  /** Time after which an HTTP client may try again, in seconds; undefined if the code tells. */
  readonly retryAfterSec: number | undefined
  /** Node at the same SRT port to which the caller may be moved in place of the refusal. */
  readonly takenBy: string | undefined

  /**
   * @param code  row of the table
   * @param options.message  replaces the message of the table
   */
  constructor(
    code: ErrorCode,
    options: { message?: string; cause?: unknown; retryAfterSec?: number; takenBy?: string } = {},
  ) {
    const refusal: Refusal = REFUSALS[code]
    super(
      options.message ?? refusal.message,
      options.cause === undefined ? {} : { cause: options.cause },
    )
    this.name = 'MillraceError'
    this.code = code
    this.hint = refusal.hint
    this.httpStatus = refusal.http ?? 500
    this.rejectCode = refusal.srt ?? RejectCode.UNKNOWN
    this.retryAfterSec = options.retryAfterSec
    this.takenBy = options.takenBy
  }
}
