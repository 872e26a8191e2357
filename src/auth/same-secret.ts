/**
 * Whether two settings hold one secret, however it is spelled: as text, as base64 of it, with or without `whsec_`.
 *
 * @module
 */
const PREFIX = 'whsec_'

/** Whether whoever knows one of the two knows the other. */
export function isSameSecret(one: string, other: string): boolean {
  const keys = keysOf(other)
  return keysOf(one).some((key) => keys.some((each) => each.equals(key)))
}

/** Keys that the text may stand for: its own bytes, and those that it is the base64 of. */
function keysOf(secret: string): Buffer[] {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const decoded = Buffer.from(text, 'base64')
  const isBase64 = text !== '' && decoded.toString('base64') === text
  return [Buffer.from(text), ...(isBase64 ? [decoded] : [])]
}
