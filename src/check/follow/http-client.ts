/**
 * HTTP client of a check: few requests at once, limits on times, sizes and redirects, and responses with their times.
 *
 * @module
 */
import { isIP } from 'node:net'
import { performance } from 'node:perf_hooks'
import { connect } from 'node:tls'
import type { Exchange, Reply, RequestRole } from '../exchange.ts'
import type { CheckClock, CheckTimer } from './check-clock.ts'
import { Redactor } from './redactor.ts'

export interface Request {
  readonly role: RequestRole
  /** Absolute; may have credentials. */
  readonly url: string
  readonly playlistUrl?: string
  readonly method?: Exchange['method']
  readonly headers?: Readonly<Record<string, string>>
  /** Time to the headers of the response; default 10 s. */
  readonly timeoutMs?: number
}

/** An exchange as rules and records see it, and the response as it came. */
export interface Loaded {
  readonly exchange: Exchange
  readonly status: number | undefined
  /** URL after redirects, which the references in a playlist are relative to. */
  readonly url: string
  readonly body: Buffer
}

/** Headers of requests for playlists. */
export const GZIP = { 'accept-encoding': 'gzip' }

export const HEADERS_TIMEOUT_MS = 10_000

/** Time without a byte of the body. */
const IDLE_TIMEOUT_MS = 10_000

/** Time for a TLS handshake that only asks for the protocol. */
const HANDSHAKE_TIMEOUT_MS = 10_000

/** Maximum number of requests at once, in total and held: the connections that browsers open to one host. */
const MAX_REQUESTS = 6
const MAX_HELD_REQUESTS = 4

const MAX_REDIRECTS = 5
const MAX_PLAYLIST_BYTES = 4 * 1024 * 1024
const MAX_MEDIA_BYTES = 64 * 1024 * 1024

/** Origin of a page that plays the stream, so that the response has its CORS headers. */
const PAGE_ORIGIN = 'https://player.example'

const HELD: ReadonlySet<RequestRole> = new Set([
  'blocking',
  'delta',
  'hint',
  'far-ahead',
  'old-sequence',
])
const MEDIA: ReadonlySet<RequestRole> = new Set([
  'segment',
  'part',
  'init',
  'hint',
  'gone',
  'range',
])

/** Headers that rules look at. Others may identify the user. */
const KEPT_HEADERS =
  /^(accept-ranges|access-control-.*|age|alt-svc|cache-control|content-(encoding|length|range|type)|date|etag|expires|last-modified|pragma|priority|retry-after|server|vary|via)$/

/** Inputs: `load` each request, until the signal aborts. */
export class HttpClient {
  readonly #clock: CheckClock
  readonly #signal: AbortSignal
  readonly #onBytes: (bytes: number) => void
  readonly #redactor = new Redactor()
  readonly #slots = new RequestSlots()
  /** By origin. */
  readonly #protocols = new Map<string, Promise<Reply['protocol']>>()
  /** Where credentials of the URL apply. */
  readonly #origin: string
  readonly #authorization: string | undefined

  /**
   * @param url  of the stream; its user name and password go to its origin alone
   * @param onBytes  called with the size of each piece of a body
   */
  constructor(
    url: string,
    clock: CheckClock,
    signal: AbortSignal,
    onBytes: (bytes: number) => void = () => undefined,
  ) {
    const { origin, username, password } = new URL(url)
    const credentials = [username, password].map(decodeURIComponent).join(':')
    this.#origin = origin
    this.#authorization =
      credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`
    this.#clock = clock
    this.#signal = signal
    this.#onBytes = onBytes
  }

  /** @returns undefined if the check ends before the response does */
  async load(request: Request): Promise<Loaded | undefined> {
    const isHeld = HELD.has(request.role)
    await this.#slots.take(isHeld)
    try {
      if (this.#signal.aborted) return undefined
      const loaded = await this.#attempt(request, true)
      return this.#signal.aborted ? undefined : loaded
    } finally {
      this.#slots.release(isHeld)
    }
  }

  async #attempt(request: Request, mayRetry: boolean): Promise<Loaded> {
    const { role, method = 'GET', playlistUrl, timeoutMs = HEADERS_TIMEOUT_MS } = request
    const headers = request.headers ?? {}
    const url = withoutCredentials(request.url)
    const sentAtMs = this.#clock.nowMs()
    const timeout = new Timeout(this.#clock, timeoutMs, `no reply within ${timeoutMs / 1000} s`)
    const exchange = {
      role,
      method,
      url: this.#redactor.redact(url),
      headers,
      sentAtMs,
      ...(playlistUrl !== undefined && { playlistUrl: this.#redactor.redact(playlistUrl) }),
    }
    try {
      const signal = AbortSignal.any([this.#signal, timeout.signal])
      const { response, finalUrl } = await this.#fetch(url, { method, headers, signal })
      const reply = await this.#read(role, response, finalUrl, timeout)
      const { status, body } = reply
      const shown = {
        ...reply,
        url: this.#redactor.redact(finalUrl),
        body: this.#shownBody(role, reply),
      }
      return { exchange: { ...exchange, reply: shown }, status, url: finalUrl, body }
    } catch (error) {
      // A server may close an idle connection while the request is on its way.
      const isStale = isLostConnection(error) && this.#clock.nowMs() - sentAtMs < 1000
      if (mayRetry && isStale && !this.#signal.aborted) return await this.#attempt(request, false)
      const failure = timeout.reason ?? whyFailed(error)
      return { exchange: { ...exchange, failure }, status: undefined, url, body: Buffer.alloc(0) }
    } finally {
      timeout.stop()
    }
  }

  /** Follows redirects by hand, so that credentials stay at their origin. */
  async #fetch(
    url: string,
    init: Required<Pick<Request, 'method' | 'headers'>> & { readonly signal: AbortSignal },
  ): Promise<{ response: Response; finalUrl: string }> {
    let current = url
    for (let redirects = 0; ; redirects++) {
      const isOwn = new URL(current).origin === this.#origin
      const authorization = isOwn ? this.#authorization : undefined
      const response = await fetch(current, {
        ...init,
        redirect: 'manual',
        headers: {
          'user-agent': 'Millrace-check',
          origin: PAGE_ORIGIN,
          'accept-encoding': 'identity',
          ...init.headers,
          ...(authorization !== undefined && { authorization }),
        },
      })
      const location = response.headers.get('location')
      const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== null
      if (!isRedirect) return { response, finalUrl: current }
      await response.body?.cancel()
      const target = URL.canParse(location, current) ? new URL(location, current) : undefined
      if (target === undefined || !/^https?:$/.test(target.protocol)) {
        throw new LimitError('redirected to no HTTP URL')
      }
      if (redirects === MAX_REDIRECTS) throw new LimitError('redirected more than 5 times')
      current = withoutCredentials(target.href)
    }
  }

  async #read(
    role: RequestRole,
    response: Response,
    url: string,
    timeout: Timeout,
  ): Promise<Reply> {
    const headersAtMs = this.#clock.nowMs()
    timeout.replace(IDLE_TIMEOUT_MS, `no data for ${IDLE_TIMEOUT_MS / 1000} s`)
    const { status } = response
    const headers = Object.fromEntries(
      [...response.headers].filter(([name]) => KEPT_HEADERS.test(name)),
    )
    const { body, longestPauseMs } = await readBody(response.body, this.#clock, {
      maxBytes: MEDIA.has(role) ? MAX_MEDIA_BYTES : MAX_PLAYLIST_BYTES,
      truncates: status >= 400,
      onRead: (bytes) => {
        timeout.restart()
        this.#onBytes(bytes)
      },
    })
    const endedAtMs = this.#clock.nowMs()
    const encodedBytes =
      headers['content-encoding'] === undefined
        ? body.length
        : Number(headers['content-length']) || undefined
    return {
      status,
      headers,
      url,
      body,
      headersAtMs,
      endedAtMs,
      longestPauseMs,
      protocol: await this.#protocolOf(url),
      ...(encodedBytes !== undefined && { encodedBytes }),
    }
  }

  /** Protocol of an origin, asked for once, on a connection of its own: `fetch` speaks HTTP/1.1 alone. */
  #protocolOf(url: string): Promise<Reply['protocol']> {
    const { protocol, origin } = new URL(url)
    if (protocol !== 'https:') return Promise.resolve('http/1.1')
    const asked = this.#protocols.get(origin) ?? askProtocol(new URL(url), this.#clock)
    this.#protocols.set(origin, asked)
    return asked
  }

  /** Body for rules and records: playlists without credentials; no text of errors, which may quote the request. */
  #shownBody(role: RequestRole, { status, body }: Reply): Buffer {
    if (status >= 300) return Buffer.alloc(0)
    if (MEDIA.has(role)) return body
    return Buffer.from(this.#redactor.redact(body.toString()))
  }
}

/** A timer that aborts a request, with a reason. */
class Timeout {
  readonly #clock: CheckClock
  readonly #controller = new AbortController()
  readonly signal = this.#controller.signal
  #timer: CheckTimer
  #reason: string

  constructor(clock: CheckClock, ms: number, reason: string) {
    this.#clock = clock
    this.#timer = this.#start(ms)
    this.#reason = reason
  }

  /** Undefined before the time is over. */
  get reason(): string | undefined {
    return this.signal.aborted ? this.#reason : undefined
  }

  replace(ms: number, reason: string): void {
    this.stop()
    this.#timer = this.#start(ms)
    this.#reason = reason
  }

  restart(): void {
    this.#timer.restart()
  }

  stop(): void {
    this.#timer.stop()
  }

  #start(ms: number): CheckTimer {
    return this.#clock.startTimer(ms, () => this.#controller.abort())
  }
}

/** Limit of simultaneous requests. Those that a server may hold leave slots for the others. */
class RequestSlots {
  #active = 0
  #held = 0
  #waiting: readonly { readonly held: boolean; readonly start: () => void }[] = []

  /** Resolves when the request may be sent; `release` frees the slot. */
  async take(held: boolean): Promise<void> {
    if (this.#isFree(held)) return this.#add(held, 1)
    await new Promise<void>((start) => {
      this.#waiting = [...this.#waiting, { held, start }]
    })
  }

  release(held: boolean): void {
    this.#add(held, -1)
    const next = this.#waiting.find((waiting) => this.#isFree(waiting.held))
    if (next === undefined) return
    this.#waiting = this.#waiting.filter((waiting) => waiting !== next)
    this.#add(next.held, 1)
    next.start()
  }

  #isFree(held: boolean): boolean {
    return this.#active < MAX_REQUESTS && (!held || this.#held < MAX_HELD_REQUESTS)
  }

  #add(held: boolean, count: 1 | -1): void {
    this.#active += count
    if (held) this.#held += count
  }
}

interface BodyLimits {
  readonly maxBytes: number
  /** Whether the rest of a larger body is dropped; otherwise it is an error. */
  readonly truncates: boolean
  /** Called with the size of each piece. */
  readonly onRead: (bytes: number) => void
}

/** Reads a body, and measures its longest pause, less the time in which this process was busy. */
async function readBody(
  stream: ReadableStream<Uint8Array> | null,
  clock: CheckClock,
  { maxBytes, truncates, onRead }: BodyLimits,
): Promise<Pick<Reply, 'body' | 'longestPauseMs'>> {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  let longestPauseMs = 0
  const sincePause = pauseMeter(clock)
  for await (const chunk of stream ?? []) {
    longestPauseMs = Math.max(longestPauseMs, sincePause())
    onRead(chunk.length)
    sizeBytes += chunk.length
    if (sizeBytes > maxBytes) {
      if (truncates) break
      throw new LimitError(`larger than ${Math.round(maxBytes / 1024 / 1024)} MiB`)
    }
    chunks.push(chunk)
  }
  return { body: Buffer.concat(chunks), longestPauseMs: Math.max(longestPauseMs, sincePause()) }
}

/** @returns a function that measures the time since its last call in which the process waited */
function pauseMeter(clock: CheckClock): () => number {
  let atMs = clock.nowMs()
  let usage = performance.eventLoopUtilization()
  return () => {
    const now = clock.nowMs()
    const usageNow = performance.eventLoopUtilization()
    const busyMs = usageNow.active - usage.active
    const pauseMs = Math.max(0, now - atMs - busyMs)
    ;[atMs, usage] = [now, usageNow]
    return pauseMs
  }
}

/** @returns `http/1.1` where the origin cannot be asked */
function askProtocol({ hostname, port }: URL, clock: CheckClock): Promise<Reply['protocol']> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    const socket = connect({
      host,
      port: Number(port) || 443,
      ...(isIP(host) === 0 && { servername: host }),
      ALPNProtocols: ['h2', 'http/1.1'],
      // Nothing is sent on this connection; `fetch` checks the certificate.
      rejectUnauthorized: false,
    })
    const end = () => {
      timer.stop()
      resolve(socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1')
      socket.destroy()
    }
    const timer = clock.startTimer(HANDSHAKE_TIMEOUT_MS, end)
    socket.once('secureConnect', end)
    socket.once('error', end)
  })
}

/** A response over a limit of this client; the message is the failure. */
class LimitError extends Error {}

/** Sentences without URL, by error code. */
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

function whyFailed(error: unknown): string {
  if (error instanceof LimitError) return error.message
  const code = codeOf(error)
  if (error instanceof Error && (error.cause as Error | undefined)?.message === 'bad port')
    return 'browsers, and this check, refuse this port'
  if (code === undefined) return 'the request failed'
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return `the certificate is not valid (${code})`
  return REASONS[code] ?? `the request failed (${code})`
}

/** Whether the connection was closed before any response. */
function isLostConnection(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(codeOf(error) ?? '')
}

/** Code of an error of `fetch`, which is in its innermost cause that has one. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const own = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return codeOf(error.cause) ?? own
}

function withoutCredentials(url: string): string {
  const plain = new URL(url)
  plain.username = ''
  plain.password = ''
  return plain.href
}
