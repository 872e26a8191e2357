/**
 * Reasons for requests without a whole reply, as sentences without URL.
 *
 * @module
 */
import { BodyTooLargeError } from './body-reader.ts'

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed',
  EPIPE: 'the connection was closed',
  ENOTFOUND: 'the host name was not found',
  EAI_AGAIN: 'the host name was not found',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the host cannot be reached',
  ETIMEDOUT: 'no connection within 10 s',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 10 s',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the body is shorter than its Content-Length',
  Z_DATA_ERROR: 'the body is not what its Content-Encoding says',
  Z_BUF_ERROR: 'the body ends within its Content-Encoding',
}

export class RedirectError extends Error {}

export function whyFailed(error: unknown): string {
  if (error instanceof BodyTooLargeError || error instanceof RedirectError) return error.message
  const code = codeOf(error)
  if (code === undefined) return 'the request failed'
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return `the certificate is not valid (${code})`
  return REASONS[code] ?? `the request failed (${code})`
}

/** Whether the connection was closed before any reply. */
export function isLostConnection(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(codeOf(error) ?? '')
}

/** Code of an error of `fetch`, which is in its cause. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.cause !== undefined) return codeOf(error.cause) ?? codeIn(error)
  return codeIn(error)
}

function codeIn(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
