/**
 * Failures of an S3-compatible store, in words for an operator. Nothing in them is a secret or a signature.
 *
 * @module
 */

type StoreErrorCode =
  | 'CREDENTIALS'
  | 'CLOCK'
  | 'NO_BUCKET'
  | 'FULL'
  | 'SLOW_DOWN'
  | 'REDIRECT'
  | 'NOT_STORED'
  | 'CONFLICT'
  | 'TOO_LARGE'
  | 'REFUSED'
  | 'SERVER_ERROR'
  | 'TIMEOUT'
  | 'TLS'
  | 'UNREACHABLE'

export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Whether the store has another version than one that may be overwritten. */
export function isConflict(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'CONFLICT'
}

/** By `status code` of a response, such as `503 SlowDown`; the first row that matches. */
const REFUSALS: readonly (readonly [RegExp, StoreErrorCode, what: string, advice: string])[] = [
  [
    /(Expired|Invalid|Required)Token|TokenRefreshRequired/,
    'CREDENTIALS',
    'The store refuses the session token',
    'set AWS_SESSION_TOKEN anew, with the keys that belong to it',
  ],
  [
    /InvalidAccessKeyId|SignatureDoesNotMatch|^401/,
    'CREDENTIALS',
    'The store refuses the credentials',
    'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  ],
  [
    /RequestTimeTooSkewed|RequestExpired/,
    'CLOCK',
    'The clock of this machine differs from that of the store',
    'synchronize it by NTP',
  ],
  [
    /NoSuchBucket|InvalidBucketName/,
    'NO_BUCKET',
    'The bucket does not exist',
    'create it, or correct ARCHIVE_URL',
  ],
  [
    /Quota|StorageFull|^507/,
    'FULL',
    'The bucket is full',
    'raise its quota, or delete old objects by a lifecycle rule',
  ],
  [
    /RequestTimeout|^408|^504/,
    'TIMEOUT',
    'The store has waited in vain',
    'check the line to it, and its load',
  ],
  [
    /BadDigest|SHA256Mismatch|IncompleteBody/,
    'NOT_STORED',
    'The store has received other bytes than were sent',
    'check the line, and proxies on it',
  ],
  [
    /SlowDown|^503|^429/,
    'SLOW_DOWN',
    'The store asks to slow down',
    'it is overloaded, or limits requests',
  ],
  [/^5/, 'SERVER_ERROR', 'The store has failed', 'see its log or its status page'],
  [
    /AccessDenied|^403/,
    'REFUSED',
    'The store refuses access',
    'the credentials need s3:PutObject, s3:GetObject and s3:ListBucket for ARCHIVE_URL',
  ],
]

interface Refusal {
  readonly status: number
  /** `x-amz-bucket-region` and `location`, where the response has them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Body, or its beginning; empty in response to HEAD. */
  readonly text: string
}

/** Error for a response that is no success. */
export function storeErrorOf({ status, headers, text }: Refusal): StoreError {
  const s3Code = /<Code>([\w.-]{1,64})<\/Code>/.exec(text)?.[1]
  const reason = s3Code === undefined ? String(status) : `${status} ${s3Code}`
  const isRedirect = status >= 300 && status < 400
  const given = headers['x-amz-bucket-region'] ?? /<Region>(.*?)<\/Region>/.exec(text)?.[1] ?? ''
  const region = /^[\w-]{1,64}$/.exec(String(given))
  if (region !== null && (isRedirect || s3Code === 'AuthorizationHeaderMalformed')) {
    const message = `The bucket is in the region ${region[0]} (${reason}): set ARCHIVE_REGION to it`
    return new StoreError('REDIRECT', message)
  }
  if (isRedirect) {
    const host = hostIn(String(headers['location']))
    const message = `The store sends requests to ${host} (${reason}), which is not followed: correct ARCHIVE_ENDPOINT`
    return new StoreError('REDIRECT', message)
  }
  const row = REFUSALS.find(([pattern]) => pattern.test(reason))
  if (row !== undefined) return new StoreError(row[1], `${row[2]} (${reason}): ${row[3]}`)
  const said = /<Message>([^<]{1,100})/.exec(text)?.[1]
  const end = said === undefined ? '' : `: ${withoutTokens(said)}`
  return new StoreError('REFUSED', `The store refuses the request (${reason})${end}`)
}

function hostIn(location: string): string {
  return URL.canParse(location) ? new URL(location).host.slice(0, 80) : 'another host'
}

/** Text of a store without what may be a signature or a token of the request, and without control characters. */
function withoutTokens(text: string): string {
  return text.replaceAll(/[\w+/=-]{30,}/g, '…').replaceAll(/\p{C}+/gu, ' ')
}

/** Codes of Node.js and OpenSSL for a certificate or a handshake. */
const TLS_CODES = /CERT|^ERR_(TLS|SSL)|^EPROTO$|^UNABLE_TO_|^HOSTNAME_/

/**
 * Error for a request that has no response, or an incomplete one.
 *
 * @param host  host and port of the store
 */
export function failureOf(cause: unknown, host: string): StoreError {
  const { code, name } = cause as { readonly code?: unknown; readonly name: string }
  const reason = typeof code === 'string' ? code : name
  if (/TIMEOUT|ETIMEDOUT/i.test(reason)) {
    const message = `No answer of ${host} in time (${reason}): check the line to it, and its load`
    return new StoreError('TIMEOUT', message, { cause })
  }
  if (TLS_CODES.test(reason)) {
    const message = `No secure connection to ${host} (${reason}): check its certificate; NODE_EXTRA_CA_CERTS adds authorities`
    return new StoreError('TLS', message, { cause })
  }
  const message = `No connection to ${host} (${reason}): check ARCHIVE_ENDPOINT and the network`
  return new StoreError('UNREACHABLE', message, { cause })
}
