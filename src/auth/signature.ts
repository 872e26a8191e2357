/**
 * LT-SIGNATURE: the HMAC-SHA256 (RFC 2104) of a body's exact bytes, in hexadecimal.
 *
 * @module
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** 64 lower-case hexadecimal digits. */
export function sign(bytes: Uint8Array, secret: string): string {
  return hmac(bytes, secret).toString('hex')
}

/** Whether `text` has the form of a signature: 64 hexadecimal digits of either case (RFC 4648 section 8). */
export function isSignature(text: string): boolean {
  return /^[0-9a-f]{64}$/i.test(text)
}

/**
 * Whether `signature` is the signature of `bytes`. Compares in constant time; text of another form never matches.
 */
function verify(bytes: Uint8Array, signature: string, secret: string): boolean {
  if (!isSignature(signature)) return false
  return timingSafeEqual(Buffer.from(signature, 'hex'), hmac(bytes, secret))
}

/**
 * Secret that made `signature`; undefined for none. Checks all secrets: the time does not reveal which one matched.
 */
export function findSigner(
  bytes: Uint8Array,
  signature: string,
  secrets: readonly string[],
): string | undefined {
  const matches = secrets.map((secret) => verify(bytes, signature, secret))
  return secrets[matches.indexOf(true)]
}

/** Name of a secret in logs: 8 hexadecimal digits, from which the secret cannot be computed. */
export function keyId(secret: string): string {
  return hmac(Buffer.from('millrace key id'), secret).toString('hex', 0, 4)
}

function hmac(bytes: Uint8Array, secret: string): Buffer {
  return createHmac('sha256', secret).update(bytes).digest()
}
