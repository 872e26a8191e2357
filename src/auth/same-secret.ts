/**
 * Comparison of secrets: of two settings by key bytes, since a secret may be written as text or in base64, with or
 * without `whsec_`; of a client's with ours in constant time.
 *
 * @module
 */
import { createHash, timingSafeEqual } from 'node:crypto'

const PREFIX = 'whsec_'

/** Whether both secrets may stand for the same key. */
export function isSameSecret(one: string, other: string): boolean {
  const keys = possibleKeys(other)
  return possibleKeys(one).some((key) => keys.some((each) => each.equals(key)))
}

/** Whether a client has sent the secret. The time reveals neither its length nor how much of it matched. */
export function isSecret(given: string, secret: string): boolean {
  return timingSafeEqual(sha256(given), sha256(secret))
}

/**
 * Whether the header `Authorization` has one of the bearer tokens (RFC 6750 section 2.1). The time does not reveal which
 * one, nor how much of it matched.
 */
export function hasBearer(authorization: string | undefined, tokens: readonly string[]): boolean {
  const [, given] = /^Bearer +(.+)$/i.exec(authorization ?? '') ?? []
  return given !== undefined && tokens.filter((token) => isSecret(given, token)).length > 0
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Keys that a secret may stand for: the bytes of the text and, if it is base64, the decoded bytes. */
function possibleKeys(secret: string): Buffer[] {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const decoded = Buffer.from(text, 'base64')
  const isBase64 = text !== '' && decoded.toString('base64') === text
  return [Buffer.from(text), ...(isBase64 ? [decoded] : [])]
}
