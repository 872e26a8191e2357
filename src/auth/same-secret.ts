/**
 * Comparison of secrets in any encoding: as text or as base64 of it, with or without `whsec_`.
 *
 * @module
 */
const PREFIX = 'whsec_'

/** Whether one of the two secrets reveals the other. */
export function isSameSecret(one: string, other: string): boolean {
  const keys = keysOf(other)
  return keysOf(one).some((key) => keys.some((each) => each.equals(key)))
}

/** Keys that the text may encode: its own bytes, and its bytes decoded from base64. */
function keysOf(secret: string): Buffer[] {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const decoded = Buffer.from(text, 'base64')
  const isBase64 = text !== '' && decoded.toString('base64') === text
  return [Buffer.from(text), ...(isBase64 ? [decoded] : [])]
}
