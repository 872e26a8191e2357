/**
 * Comparison of secrets by key bytes: a secret may be written as text or in base64, with or without `whsec_`.
 *
 * @module
 */
const PREFIX = 'whsec_'

/** Whether both secrets may stand for the same key. */
export function isSameSecret(one: string, other: string): boolean {
  const keys = possibleKeys(other)
  return possibleKeys(one).some((key) => keys.some((each) => each.equals(key)))
}

/** Keys that a secret may stand for: the bytes of the text and, if it is base64, the decoded bytes. */
function possibleKeys(secret: string): Buffer[] {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const decoded = Buffer.from(text, 'base64')
  const isBase64 = text !== '' && decoded.toString('base64') === text
  return [Buffer.from(text), ...(isBase64 ? [decoded] : [])]
}
