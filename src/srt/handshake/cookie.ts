/**
 * SYN cookies (draft-sharabayko-srt 4.3.1.1): a listener stores no state for a caller until the caller has proved that
 * it receives packets at its source address.
 *
 * libsrt hashes address and minute without a secret, so an attacker can compute the cookie of any address. These
 * cookies are keyed with a secret that rotates, and bound to the caller's socket id as well.
 *
 * @module
 */
import { createHmac } from 'node:crypto'

/**
 * Min time for which a secret issues cookies. The previous secret stays valid for as long, so a cookie is valid for at
 * least 30 s; a caller stops after 3 s.
 */
const ROTATION_US = 30_000_000

const SECRET_BYTES = 32

/** Source address and port of a handshake, and the caller's socket id. */
export interface CookieOwner {
  readonly address: string
  readonly port: number
  readonly socketId: number
}

export class CookieIssuer {
  readonly #random: (bytes: number) => Buffer
  #current: Buffer
  #previous: Buffer
  #rotatedUs: number

  constructor(random: (bytes: number) => Buffer, nowUs: number) {
    this.#random = random
    this.#current = random(SECRET_BYTES)
    this.#previous = this.#current
    this.#rotatedUs = nowUs
  }

  /** @returns a signed 32-bit cookie */
  issue(owner: CookieOwner, nowUs: number): number {
    this.#rotate(nowUs)
    return computeCookie(this.#current, owner)
  }

  /** @returns whether `cookie` was issued to `owner` with the current or the previous secret */
  verify(cookie: number, owner: CookieOwner, nowUs: number): boolean {
    this.#rotate(nowUs)
    return (
      cookie === computeCookie(this.#current, owner) ||
      cookie === computeCookie(this.#previous, owner)
    )
  }

  #rotate(nowUs: number): void {
    const elapsedUs = nowUs - this.#rotatedUs
    if (elapsedUs < ROTATION_US) return
    const next = this.#random(SECRET_BYTES)
    this.#previous = elapsedUs < 2 * ROTATION_US ? this.#current : next
    this.#current = next
    this.#rotatedUs = nowUs
  }
}

function computeCookie(secret: Buffer, { address, port, socketId }: CookieOwner): number {
  return createHmac('sha256', secret)
    .update(`${address} ${port} ${socketId}`)
    .digest()
    .readInt32BE()
}
