/**
 * Verification of a JWT (RFC 7519) that is signed with HS256 and bound to one stream by its claim `stream_id`.
 *
 * @module
 */
import { errors, jwtVerify, type JWTPayload } from 'jose'

export interface VerifyOptions {
  /** Any of them may have signed the token. */
  readonly secrets: readonly string[]
  readonly now: Date
}

/**
 * @param token  untrusted
 * @returns claims, and the secret that has signed them; undefined for a token that none has signed, or without the claims
 *   `stream_id` and `exp`
 */
export async function verifySignedToken(
  token: string,
  { secrets, now }: VerifyOptions,
): Promise<{ readonly payload: JWTPayload; readonly secret: string } | 'expired' | undefined> {
  for (const secret of secrets) {
    try {
      const { payload } = await jwtVerify(token, new TextEncoder().encode(secret), {
        algorithms: ['HS256'],
        requiredClaims: ['stream_id', 'exp'],
        currentDate: now,
      })
      return { payload, secret }
    } catch (error) {
      // The error contains the claims, which must not be logged.
      if (error instanceof errors.JWTExpired) return 'expired'
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) return undefined
    }
  }
  return undefined
}
