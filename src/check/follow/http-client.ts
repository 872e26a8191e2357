/**
 * HTTP client of a check: few requests at once, limits on times, sizes and redirects, and replies with their times.
 *
 * @module
 */
import type { Exchange, Reply, Role } from '../exchange.ts'
import { OriginProtocols } from './alpn.ts'
import { readBody } from './body-reader.ts'
import { isLostConnection, RedirectError, whyFailed } from './failure.ts'
import { Redactor } from './redactor.ts'
import { RequestSlots } from './request-slots.ts'

export interface Request {
  readonly role: Role
  /** Absolute; may have credentials. */
  readonly url: string
  readonly playlistUrl?: string
  readonly method?: Exchange['method']
  readonly headers?: Readonly<Record<string, string>>
  /** Time to the headers of the reply; default 10 s. */
  readonly timeoutMs?: number
}

/** An exchange as rules and records see it, and the reply as it came. */
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

const MAX_REDIRECTS = 5
const MAX_PLAYLIST_BYTES = 4 * 1024 * 1024
const MAX_MEDIA_BYTES = 64 * 1024 * 1024

/** Origin of a page that plays the stream, so that the reply has its CORS headers. */
const PAGE_ORIGIN = 'https://player.example'

const HELD: ReadonlySet<Role> = new Set(['blocking', 'delta', 'hint', 'far-ahead', 'old-sequence'])
const MEDIA: ReadonlySet<Role> = new Set(['segment', 'part', 'init', 'hint', 'gone', 'range'])

/** Headers that rules look at. Others may identify the user. */
const KEPT_HEADERS =
  /^(accept-ranges|access-control-.*|age|alt-svc|cache-control|content-(encoding|length|range|type)|date|etag|expires|last-modified|pragma|priority|retry-after|server|vary|via)$/

/** Answers `load` until its signal aborts. */
export class HttpClient {
  readonly #nowMs: () => number
  readonly #signal: AbortSignal
  readonly #redactor = new Redactor()
  readonly #slots = new RequestSlots()
  readonly #protocols = new OriginProtocols()
  /** Where credentials of the URL apply. */
  readonly #origin: string
  readonly #authorization: string | undefined

  /**
   * @param url  of the stream; its user name and password go to its origin alone
   * @param nowMs  milliseconds since 1970, on a clock that does not jump
   */
  constructor(url: string, nowMs: () => number, signal: AbortSignal) {
    const { origin, username, password } = new URL(url)
    const credentials = [username, password].map(decodeURIComponent).join(':')
    this.#origin = origin
    this.#authorization =
      credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`
    this.#nowMs = nowMs
    this.#signal = signal
  }

  redact(text: string): string {
    return this.#redactor.redact(text)
  }

  /** @returns undefined if the check ends before the reply does */
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
    const sentAtMs = this.#nowMs()
    const timeout = new Timeout(timeoutMs, `no reply within ${timeoutMs / 1000} s`)
    const exchange = {
      role,
      method,
      url: this.redact(url),
      headers,
      sentAtMs,
      ...(playlistUrl !== undefined && { playlistUrl: this.redact(playlistUrl) }),
    }
    try {
      const signal = AbortSignal.any([this.#signal, timeout.signal])
      const response = await this.#follow(url, { method, headers, signal })
      const reply = await this.#read(role, response, timeout)
      const { status, url: finalUrl, body } = reply
      const shown = { ...reply, url: this.redact(finalUrl), body: this.#shownBody(role, reply) }
      return { exchange: { ...exchange, reply: shown }, status, url: finalUrl, body }
    } catch (error) {
      // A server may close an idle connection while the request is on its way.
      const isStale = isLostConnection(error) && this.#nowMs() - sentAtMs < 1000
      if (mayRetry && isStale && !this.#signal.aborted) return await this.#attempt(request, false)
      const failure = timeout.reason ?? whyFailed(error)
      return { exchange: { ...exchange, failure }, status: undefined, url, body: Buffer.alloc(0) }
    } finally {
      timeout.stop()
    }
  }

  async #follow(url: string, init: RequestInit): Promise<Response & { finalUrl?: string }> {
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
          ...(init.headers as Record<string, string>),
          ...(authorization !== undefined && { authorization }),
        },
      })
      const location = response.headers.get('location')
      const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== null
      if (!isRedirect) return Object.assign(response, { finalUrl: current })
      await response.body?.cancel()
      const target = URL.canParse(location, current) ? new URL(location, current) : undefined
      if (target === undefined || !/^https?:$/.test(target.protocol)) {
        throw new RedirectError('redirected to no HTTP URL')
      }
      if (redirects === MAX_REDIRECTS) throw new RedirectError('redirected more than 5 times')
      current = withoutCredentials(target.href)
    }
  }

  async #read(
    role: Role,
    response: Response & { finalUrl?: string },
    timeout: Timeout,
  ): Promise<Reply> {
    const headersAtMs = this.#nowMs()
    timeout.replace(IDLE_TIMEOUT_MS, `no data for ${IDLE_TIMEOUT_MS / 1000} s`)
    const { status, finalUrl: url = response.url } = response
    const headers = Object.fromEntries(
      [...response.headers].filter(([name]) => KEPT_HEADERS.test(name)),
    )
    const { body, longestPauseMs } = await readBody(response.body, this.#nowMs, {
      maxBytes: MEDIA.has(role) ? MAX_MEDIA_BYTES : MAX_PLAYLIST_BYTES,
      truncates: status >= 400,
      onRead: () => timeout.restart(),
    })
    const endedAtMs = this.#nowMs()
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
      protocol: await this.#protocols.find(url),
      ...(encodedBytes !== undefined && { encodedBytes }),
    }
  }

  /** Body for rules and records: playlists without credentials; no text of errors, which may quote the request. */
  #shownBody(role: Role, { status, body }: Reply): Buffer {
    if (status >= 300) return Buffer.alloc(0)
    if (MEDIA.has(role)) return body
    return Buffer.from(this.redact(body.toString()))
  }
}

/** A timer that aborts a request, with a reason. */
class Timeout {
  readonly #controller = new AbortController()
  readonly signal = this.#controller.signal
  #timer: NodeJS.Timeout
  #reason: string

  constructor(ms: number, reason: string) {
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
    this.#timer.refresh()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #start(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(), ms)
  }
}

function withoutCredentials(url: string): string {
  const plain = new URL(url)
  plain.username = ''
  plain.password = ''
  return plain.href
}
