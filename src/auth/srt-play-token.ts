/**
 * Play requests: `mode=request,rid=<stream_id>,token=<jwt>`, the SRT StreamID of a reader. The token is needed where
 * playback needs one: a JWT (RFC 7519) signed with HS256 by `PLAYBACK_SECRET`, so that no stream key is a play token.
 *
 * @module
 */
import { SignJWT } from 'jose'
import { MillraceError } from '../errors.ts'
import { verifySignedToken, type VerifyOptions } from './signed-token.ts'
import { isStreamId, STREAM_ID_ALLOWED } from './stream-id.ts'
import { readStreamIdFields } from './stream-key.ts'

/** Mode of a reader, in either form, percent-encoded or not. */
const READS = /(?:^|,|%2C|::|%3A)m(?:ode)?(?:=|%3D)request(?:,|%2C|#|%23|$)/i

export interface PlayRequest {
  /** A stream id, see `isStreamId`. */
  readonly rid: string
  /** A credential: never log it. */
  readonly token?: string
}

/** @returns StreamID of a reader; with a token it is a credential: never log it */
export function formatPlayRequest({ rid, token }: PlayRequest): string {
  return `mode=request,rid=${rid}${token === undefined ? '' : `,token=${token}`}`
}

/**
 * Parses the StreamID of a caller in either form, see `readStreamIdFields`.
 *
 * @param text  untrusted
 * @returns undefined for a caller that does not ask to read
 * @throws {MillraceError} `STREAM_KEY_MALFORMED`
 */
export function parsePlayRequest(text: string): PlayRequest | undefined {
  if (!READS.test(text)) return undefined
  const { mode, resource: rid, token } = readStreamIdFields(text)
  if (mode !== 'request') return undefined
  if (!isStreamId(rid)) {
    const message = `stream id of a reader malformed, rid ${STREAM_ID_ALLOWED}: set streamid to mode=request,rid=<stream_id>,token=<jwt>`
    throw new MillraceError('STREAM_KEY_MALFORMED', { message })
  }
  return { rid, ...(token !== undefined && { token }) }
}

/** @param secret  value of `PLAYBACK_SECRET`; the newest of two */
export function issuePlayToken(
  streamId: string,
  { secret, expiresAt }: { readonly secret: string; readonly expiresAt: Date },
): Promise<string> {
  return new SignJWT({ stream_id: streamId })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(expiresAt)
    .sign(new TextEncoder().encode(secret))
}

/**
 * @param request.token  untrusted
 * @param options.secrets  values of `PLAYBACK_SECRET`, any of which may have signed the token
 * @throws {MillraceError} `PLAYBACK_TOKEN_MISSING`, `PLAYBACK_TOKEN_INVALID` or `PLAYBACK_TOKEN_EXPIRED`
 */
export async function verifyPlayToken(
  { rid, token }: PlayRequest,
  options: VerifyOptions,
): Promise<void> {
  if (token === undefined) {
    const message = 'the reader has no token: set streamid to that of the play_url'
    throw new MillraceError('PLAYBACK_TOKEN_MISSING', { message })
  }
  const verified = await verifySignedToken(token, options)
  if (verified === 'expired') throw new MillraceError('PLAYBACK_TOKEN_EXPIRED')
  if (verified?.payload['stream_id'] !== rid) throw new MillraceError('PLAYBACK_TOKEN_INVALID')
}
