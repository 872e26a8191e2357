/**
 * Stream keys: `mode=publish,rid=<stream_id>,token=<jwt>`, the SRT StreamID of an encoder.
 *
 * The token is a JWT (RFC 7519) signed with HS256 and bound to one stream by its claim `stream_id`. Keys of encrypted
 * streams have the claim `enc`, the time from which the stream is encrypted. The passphrase is derived from stream id,
 * `enc` and secret, so encryption survives a restart without stored state.
 *
 * @module
 */
import { createHmac, randomBytes } from 'node:crypto'
import { SignJWT, errors, jwtVerify, type JWTPayload } from 'jose'
import { ALLOWED, isStreamId } from '../contract/schema.ts'
import { MillraceError } from '../errors.ts'
import { MAX_STREAM_ID_BYTES } from '../srt/wire/limits.ts'

export const STREAM_KEY_LIFETIME_SEC = 2 * 60 * 60

/** How far the clock of an issuer may be ahead, as nodes of a cluster may. A revocation misses keys dated after it. */
const MAX_CLOCK_SKEW_SEC = 60

/**
 * Prefix of a StreamID in the form of SRT's access control guidelines, with `m` for the mode and `r` for the resource.
 */
const GUIDELINES_PREFIX = '#!::'

export interface StreamKey {
  /** A credential: never log it. For every valid stream id it has at most MAX_STREAM_ID_BYTES. */
  readonly streamKey: string
  /** A whole second, as in the claim `exp`. */
  readonly expiresAt: Date
}

/** Claims of a verified stream key. Times are in seconds since 1970. */
export interface StreamKeyClaims {
  readonly streamId: string
  /** Absent in tokens of issuers that write no `iat`: they may have been issued at any time. */
  readonly issuedAtSec?: number
  readonly expiresAtSec: number
  /** Present if the stream was encrypted when the key was issued. */
  readonly encryption?: StreamEncryption
}

/** Passphrase of one stream. */
export interface StreamEncryption {
  /** Time from which the stream is encrypted, in seconds since 1970. */
  readonly sinceSec: number
  /** A credential: never log it. 32 characters of base64url. */
  readonly passphrase: string
}

/**
 * Issues a unique stream key that is valid for two hours from `now`. Older keys stay valid.
 *
 * @param options.streamId  already checked: no comma, at most 128 characters
 * @param options.secret  value of `JWT_SECRET`; for an encrypted stream, the value that its passphrase is derived from
 * @param options.encryptedSinceSec  `StreamEncryption.sinceSec`; undefined for a stream without encryption
 */
export async function issueStreamKey(options: {
  readonly streamId: string
  readonly secret: string
  readonly now: Date
  readonly encryptedSinceSec?: number | undefined
}): Promise<StreamKey> {
  const { streamId, encryptedSinceSec } = options
  const issuedAtSec = Math.floor(options.now.getTime() / 1000)
  const expiresAtSec = issuedAtSec + STREAM_KEY_LIFETIME_SEC
  const encryption = encryptedSinceSec === undefined ? {} : { enc: encryptedSinceSec }
  const token = await new SignJWT({ stream_id: streamId, ...encryption })
    .setProtectedHeader({ alg: 'HS256' })
    // 96 random bits: with a UUID, a key for the longest stream id exceeds MAX_STREAM_ID_BYTES.
    .setJti(randomBytes(12).toString('base64url'))
    .setIssuedAt(issuedAtSec)
    .setExpirationTime(expiresAtSec)
    .sign(new TextEncoder().encode(options.secret))
  return {
    streamKey: `mode=publish,rid=${streamId},token=${token}`,
    expiresAt: new Date(expiresAtSec * 1000),
  }
}

/** Derives a passphrase of 192 bits, in characters that no URL, shell or encoder alters. */
export function deriveEncryption(options: {
  readonly streamId: string
  readonly secret: string
  readonly sinceSec: number
}): StreamEncryption {
  const { streamId, secret, sinceSec } = options
  // The signed text of a token has no spaces, so this digest is never the signature of a token.
  const text = `SRT passphrase of ${streamId} since ${sinceSec}`
  const digest = createHmac('sha256', secret).update(text).digest()
  return { sinceSec, passphrase: digest.subarray(0, 24).toString('base64url') }
}

/**
 * Verifies the StreamID of an encoder: form, signature, expiry, and that `rid` is the stream of the token.
 *
 * @param text  untrusted
 * @param options.secrets  values of `JWT_SECRET`, any of which may have signed the key
 * @throws {MillraceError} `STREAM_KEY_MALFORMED`, `STREAM_KEY_INVALID`, `STREAM_KEY_EXPIRED` or `STREAM_KEY_MISMATCH`;
 *   no message contains any of `text`
 */
export async function verifyStreamKey(
  text: string,
  options: { readonly secrets: readonly string[]; readonly now: Date },
): Promise<StreamKeyClaims> {
  const { rid, token } = parseStreamKey(text)
  const { payload, secret } = await verifyToken(token, options)
  const { stream_id: streamId, exp: expiresAtSec = 0, iat, enc } = payload
  if (streamId !== rid) throw new MillraceError('STREAM_KEY_MISMATCH')
  if (iat !== undefined && iat * 1000 > options.now.getTime() + MAX_CLOCK_SKEW_SEC * 1000) {
    const message =
      'stream key issued in the future: set the clock of its issuer, or of this machine'
    throw new MillraceError('STREAM_KEY_INVALID', { message })
  }
  return {
    streamId: rid,
    ...(iat !== undefined && { issuedAtSec: iat }),
    expiresAtSec,
    ...(typeof enc === 'number' && {
      encryption: deriveEncryption({ streamId: rid, secret, sinceSec: enc }),
    }),
  }
}

/** @returns the claims, and the secret that verified them */
async function verifyToken(
  token: string,
  { secrets, now }: { readonly secrets: readonly string[]; readonly now: Date },
): Promise<{ readonly payload: JWTPayload; readonly secret: string }> {
  for (const secret of secrets) {
    try {
      const { payload } = await jwtVerify(token, new TextEncoder().encode(secret), {
        algorithms: ['HS256'],
        requiredClaims: ['stream_id', 'exp'],
        currentDate: now,
      })
      return { payload, secret }
    } catch (error) {
      if (error instanceof errors.JWSSignatureVerificationFailed) continue
      // No `cause`: it contains the claims, which must not be logged.
      throw new MillraceError(
        error instanceof errors.JWTExpired ? 'STREAM_KEY_EXPIRED' : 'STREAM_KEY_INVALID',
      )
    }
  }
  throw new MillraceError('STREAM_KEY_INVALID')
}

export interface StreamKeyParts {
  /** A stream id, see `isStreamId`. */
  readonly rid: string
  readonly token: string
  /** Value of `program`, not validated: the program of the transport stream to publish. */
  readonly program?: string
}

/**
 * Parses the name=value pairs without verifying them. Accepts any order, ignores unknown names, rejects repeated names.
 * Also accepts the form of SRT's access control guidelines, `#!::r=<stream_id>,m=publish,token=<jwt>`. There `rid` and
 * `mode` win over `r` and `m`, since some encoders put the whole stream key into the field that becomes `r`.
 *
 * @throws {MillraceError} `STREAM_KEY_MALFORMED`
 */
export function parseStreamKey(text: string): StreamKeyParts {
  if (Buffer.byteLength(text) > MAX_STREAM_ID_BYTES) {
    throw malformed(`it is longer than ${MAX_STREAM_ID_BYTES} bytes`)
  }
  const plain = decoded(text)
  const isGuidelines = plain.startsWith(GUIDELINES_PREFIX)
  const pairs = new Map<string, string>()
  for (const pair of plain.slice(isGuidelines ? GUIDELINES_PREFIX.length : 0).split(',')) {
    const equals = pair.indexOf('=')
    if (equals < 1) throw malformed('a part is not name=value')
    const key = pair.slice(0, equals)
    if (pairs.has(key)) throw malformed('a name is repeated')
    pairs.set(key, pair.slice(equals + 1))
  }
  const valueOf = (key: string, short: string) =>
    pairs.get(key) ?? (isGuidelines ? pairs.get(short) : undefined)
  if (valueOf('mode', 'm') !== 'publish') throw malformed('mode is not publish')
  const rid = valueOf('rid', 'r')
  const token = pairs.get('token')
  if (!rid) throw malformed('rid is missing')
  if (!isStreamId(rid)) throw malformed(`rid ${ALLOWED.stream_id}`)
  if (!token) throw malformed('token is missing')
  const program = pairs.get('program')
  return { rid, token, ...(program !== undefined && { program }) }
}

/**
 * Decodes a key that is percent-encoded as a whole, and so contains no `=`. Encoders send such a key if the user
 * encoded the URL and the encoder does not decode it (libsrt's URL parser does not; ffmpeg's does).
 */
function decoded(text: string): string {
  if (text.includes('=')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    throw malformed('its percent-encoding is broken')
  }
}

function malformed(what: string): MillraceError {
  const message = `stream key malformed, ${what}: set streamid to mode=publish,rid=<stream_id>,token=<jwt>`
  return new MillraceError('STREAM_KEY_MALFORMED', { message })
}
