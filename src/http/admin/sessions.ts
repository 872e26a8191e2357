/**
 * Sessions of the dashboard: a signed value that the browser keeps in a cookie, `id.expiry.signature`.
 *
 * The key is random and mixed with the password: a restart or another password ends all sessions.
 *
 * @module
 */
import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isSecret } from '../../auth/same-secret.ts'

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
    const [id = '', expiryMs = ''] = value.split('.')
    const claims = `${id}.${expiryMs}`
    if (!isSecret(value, `${claims}.${this.#sign(claims)}`)) return false
    return nowMs < Number(expiryMs) && !this.#closed.has(id)
  }

  /** The first of the values that is of a session that is not over. */
  find(values: readonly string[], nowMs: number): string | undefined {
    return values.find((value) => this.isOpen(value, nowMs))
  }

  /** Ends a session; `isOpen` has confirmed its value. */
  close(value: string): void {
    this.#closed.set(value.split('.', 1)[0]!, true)
  }

  #sign(claims: string): string {
    const key = createHmac('sha256', this.#random).update(this.#readPassword()).digest()
    return createHmac('sha256', key).update(claims).digest('base64url')
  }
}
