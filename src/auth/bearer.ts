/**
 * Bearer tokens in the header `Authorization` (RFC 6750 section 2.1).
 *
 * @module
 */
import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether the header has one of the tokens. The time does not reveal which one, nor how much of it matched. */
export function hasBearer(authorization: string | undefined, tokens: readonly string[]): boolean {
  const [, given] = /^Bearer +(.+)$/i.exec(authorization ?? '') ?? []
  if (given === undefined) return false
  const hash = sha256(given)
  return tokens.filter((token) => timingSafeEqual(sha256(token), hash)).length > 0
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
