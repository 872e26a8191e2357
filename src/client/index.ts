/**
 * Client of the signed API, for Node and for browsers: WebCrypto and `fetch`, nothing else.
 *
 * @module millrace/client
 */
import type { EndpointName, RequestBody, ResponseData } from '../api/endpoints.ts'
import type { ErrorCode } from '../errors.ts'

export type { EndpointName, ErrorCode, RequestBody, ResponseData }

/** Former name of `ResponseData`. */
export type AnswerData<Name extends EndpointName> = ResponseData<Name>

/** Options of a client. */
export interface ClientOptions {
  /** Base URL of the service, for example `http://127.0.0.1:8080`. */
  readonly url: string
  /** `HMAC_SECRET`, which starts and stops any stream: no page for viewers may contain it. */
  readonly secret: string
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch
  /** Time limit of a call, up to the last byte of its response, in milliseconds; default 30,000. */
  readonly timeoutMs?: number
  /** Receives a sentence for each field of a call that the service does not have, for example a misspelt one. The call rejects with what it throws. */
  readonly onWarning?: (warning: string) => void
  /** Maximum size of a response, in bytes after decompression; default 16 MiB. */
  readonly maxResponseBytes?: number
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call. */
  readonly signal?: AbortSignal | null
}

const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_MAX_RESPONSE_BYTES = 16 * 1024 * 1024

/** Refusal of a call. */
export class ApiError extends Error {
  /** HTTP status; 0 for a redirect in browsers, which hide it. */
  readonly status: number
  /** Code of docs/api-reference.md; `UNKNOWN` for a response that is not of Millrace, for example of a proxy. */
  readonly code: ErrorCode | 'UNKNOWN'
  /** What to do, where the message does not say it. */
  readonly hint: string | undefined

  constructor(status: number, code: ErrorCode | 'UNKNOWN', message: string, hint?: string) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.hint = hint
  }
}

/** Signs and sends calls; bodies and responses are those of docs/api.md. */
export class Client {
  readonly #options: ClientOptions

  /** @throws {TypeError} for an empty secret */
  constructor(options: ClientOptions) {
    if (!options.secret) throw new TypeError('secret is empty: set it to HMAC_SECRET')
    this.#options = options
  }

  /**
   * @param name  path of the endpoint below `/api/`
   * @throws {ApiError} if the service refuses the call, the URL redirects, or the response is larger than `maxResponseBytes`
   * @throws {DOMException} `TimeoutError` after `timeoutMs`
   * @throws {TypeError} if the service cannot be reached, or the page has no WebCrypto: it is neither HTTPS nor local
   */
  async call<Name extends EndpointName>(
    name: Name,
    body: RequestBody<Name>,
    { signal = null }: CallOptions = {},
  ): Promise<ResponseData<Name>> {
    const { url, secret, fetch: send = fetch, onWarning } = this.#options
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxResponseBytes = DEFAULT_MAX_RESPONSE_BYTES } =
      this.#options
    const timeout = AbortSignal.timeout(timeoutMs)
    // In Node 20, one that `AbortSignal.any` alone knows is collected as garbage, and never aborts.
    timeout.addEventListener('abort', () => undefined)
    // With API_MAX_AGE_SEC the service refuses requests without their time, and old ones.
    const text = JSON.stringify({ issued_at: Date.now() / 1000, ...body })
    const response = await send(`${url.replace(/\/$/, '')}/api/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'lt-signature': await sign(text, secret) },
      body: text,
      // Another origin could replay the signed body.
      redirect: 'manual',
      signal: signal === null ? timeout : AbortSignal.any([signal, timeout]),
    })
    const envelope = parseEnvelope(await readText(response, maxResponseBytes))
    if (envelope?.success === true) {
      for (const warning of envelope.warnings ?? []) onWarning?.(warning)
      return envelope.data as ResponseData<Name>
    }
    const message = isRedirect(response)
      ? 'the URL redirects, and signed calls are not sent on: set `url` to the address that answers'
      : `HTTP ${response.status} without an answer of Millrace: is the URL right?`
    const { code = 'UNKNOWN', error = message, hint } = envelope ?? {}
    throw new ApiError(response.status, code, error, hint)
  }
}

/**
 * Reads a response. Not every browser iterates a body.
 *
 * @throws {ApiError} for more than `maxBytes`; no more are received
 */
async function readText({ status, body }: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder()
  const reader = body?.getReader()
  let text = ''
  let sizeBytes = 0
  for (let chunk = await reader?.read(); chunk?.value; chunk = await reader?.read()) {
    sizeBytes += chunk.value.length
    if (sizeBytes > maxBytes) {
      void reader?.cancel()
      throw new ApiError(status, 'UNKNOWN', `the response is larger than ${maxBytes} bytes`)
    }
    text += decoder.decode(chunk.value, { stream: true })
  }
  return text + decoder.decode()
}

function isRedirect({ type, status }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400)
}

async function sign(text: string, secret: string): Promise<string> {
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const secretBytes = encoder.encode(secret)
  const key = await crypto.subtle.importKey('raw', secretBytes, algorithm, false, ['sign'])
  const digest = await crypto.subtle.sign('HMAC', key, encoder.encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Body of every response. */
type Envelope =
  | { readonly success: true; readonly data: unknown; readonly warnings?: readonly string[] }
  | {
      readonly success: false
      readonly error: string
      readonly code: ErrorCode
      readonly hint?: string
    }

/** @returns undefined for text that is no response of Millrace */
function parseEnvelope(text: string): Envelope | undefined {
  try {
    const envelope = JSON.parse(text) as Partial<Envelope> | null
    return typeof envelope?.success === 'boolean' ? (envelope as Envelope) : undefined
  } catch {
    return undefined
  }
}
