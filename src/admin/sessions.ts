/**
 * Sessions of the dashboard: a signed value that the browser keeps in a cookie (RFC 6265), `id.expiry.signature`.
 *
 * The key is random and mixed with the password: a restart or another password ends all sessions.
 *
 * @module
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { isSecret } from '../auth/same-secret.ts'
import { protocolOf } from '../http/node-access.ts'

const COOKIE = 'millrace_admin'

/** Maximum number of cookies of the name that are read: other services of the host may have set some. */
const MAX_COOKIES = 4

export const SESSION_SEC = 12 * 60 * 60

/** Maximum number of remembered sessions that were closed before their expiry. Only their owners can close them. */
const MAX_CLOSED = 1000

/** Times are milliseconds since 1970. */
export class Sessions {
  readonly #readPassword: () => string
  readonly #random = randomBytes(32)
  readonly #closed = new LRUCache<string, true>({ max: MAX_CLOSED })

  /** @param readPassword  the password now, which may change */
  constructor(readPassword: () => string) {
    this.#readPassword = readPassword
  }

  /** Compares in constant time. */
  isPassword(text: string): boolean {
    return isSecret(text, this.#readPassword())
  }

  /** @returns value of a new session */
  open(nowMs: number): string {
    const claims = `${randomBytes(12).toString('base64url')}.${nowMs + SESSION_SEC * 1000}`
    return `${claims}.${this.#sign(claims)}`
  }

  /** Whether `value` is that of a session that is not over. */
  isOpen(value: string, nowMs: number): boolean {
    const { id, expiryMs } = claimsOf(value)
    return this.#isSigned(value) && nowMs < expiryMs && !this.#closed.has(id)
  }

  /** Value of the session of a request; undefined: it has none that is not over. */
  find(headers: FastifyRequest['headers'], nowMs: number): string | undefined {
    return valuesOf(headers).find((value) => this.isOpen(value, nowMs))
  }

  /**
   * Whether a request has a session whose time is not over, but which a restart or another password has ended, or which is one
   * of another service of the host: cookies know no ports (RFC 6265, section 8.5).
   */
  hasLost(headers: FastifyRequest['headers'], nowMs: number): boolean {
    const isLost = (value: string) => !this.#isSigned(value) && nowMs < claimsOf(value).expiryMs
    return valuesOf(headers).some(isLost)
  }

  /** Ends a session; `isOpen` has confirmed its value. */
  close(value: string): void {
    this.#closed.set(claimsOf(value).id, true)
  }

  #isSigned(value: string): boolean {
    const claims = value.slice(0, value.lastIndexOf('.'))
    return isSecret(value, `${claims}.${this.#sign(claims)}`)
  }

  #sign(claims: string): string {
    const key = createHmac('sha256', this.#random).update(this.#readPassword()).digest()
    return createHmac('sha256', key).update(claims).digest('base64url')
  }
}

/** Values of the cookies of a request that may be sessions. */
function valuesOf({ cookie = '' }: FastifyRequest['headers']): string[] {
  const found = cookie.matchAll(new RegExp(`(?:^|; *)${COOKIE}=([\\w.-]+)`, 'g'))
  return Array.from(found, ([, value = '']) => value).slice(0, MAX_COOKIES)
}

/** Claims of a value that may be anything: NaN without an expiry. */
function claimsOf(value: string): { id: string; expiryMs: number } {
  const [id = '', expiryMs] = value.split('.')
  return { id, expiryMs: Number(expiryMs) }
}

/**
 * Without a path: browsers take that of the dashboard from the URL of the call (RFC 6265, section 5.1.4), wherever it is.
 *
 * @param value  of a session; an empty text deletes the cookie
 */
export function formatCookie(value: string, request: FastifyRequest): string {
  const maxAgeSec = value === '' ? 0 : SESSION_SEC
  const secure = protocolOf(request) === 'https' ? '; Secure' : ''
  return `${COOKIE}=${value}; Max-Age=${maxAgeSec}; HttpOnly; SameSite=Strict${secure}`
}
