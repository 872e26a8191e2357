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

/**
 * Whether `signature` is that of `bytes`. Digits of either case are hexadecimal (RFC 4648 section 8); anything else
 * matches nothing. Takes the same time wherever the two differ.
 */
export function verify(bytes: Uint8Array, signature: string, secret: string): boolean {
  if (!/^[0-9a-f]{64}$/i.test(signature)) return false
  return timingSafeEqual(Buffer.from(signature, 'hex'), hmac(bytes, secret))
}

function hmac(bytes: Uint8Array, secret: string): Buffer {
  return createHmac('sha256', secret).update(bytes).digest()
}
