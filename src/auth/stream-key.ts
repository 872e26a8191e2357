/**
 * Stream keys: `mode=publish,rid=<stream_id>,token=<jwt>`, the SRT StreamID of an encoder, and the short ones of
 * `short-key.ts`.
 *
 * The token is a JWT (RFC 7519) signed with HS256 and bound to one stream by its claim `stream_id`; for a backup encoder it has
 * the claim `role`, `backup`. Keys of encrypted
 * streams have the claim `enc`, the time from which the stream is encrypted. The passphrase is derived from stream id,
 * `enc` and secret, so encryption survives a restart without stored state.
 *
 * @module
 */
import { createHmac, randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import { createShortKey, isShortToken, splitShortKey, verifyShortToken } from './short-key.ts'
import { verifySignedToken, type VerifyOptions } from './signed-token.ts'
import { isStreamId, STREAM_ID_ALLOWED } from './stream-id.ts'
import { MillraceError } from '../errors.ts'
import { MAX_STREAM_ID_BYTES } from '../srt/wire/limits.ts'

/** Lifetime of a key that is asked for without one. */
export const STREAM_KEY_LIFETIME_SEC = 2 * 60 * 60

/** Bounds of `key_lifetime_sec`: a minute, and a year. */
export const KEY_LIFETIME_SEC = { minimum: 60, maximum: 365 * 24 * 60 * 60 }

/** How far the clock of an issuer may be ahead, as nodes of a cluster may. A revocation misses keys dated after it. */
export const MAX_CLOCK_SKEW_SEC = 60

/**
 * Prefix of a StreamID in the form of SRT's access control guidelines, with `m` for the mode and `r` for the resource.
 */
const GUIDELINES_PREFIX = '#!::'

/** What apps append to the end of a StreamID. Neither a key nor a stream id contains `#`, but names of devices may. */
const FRAGMENT = /(?<=.)#.*$/s

/** Field of the guidelines' form that an encoder has put before a whole stream key. */
const KEY_IN_FIELD = /^[ru]=(?=mode=)/

interface StreamKey {
  /** A credential: never log it. For every valid stream id it has at most MAX_STREAM_ID_BYTES. */
  readonly streamKey: string
  /** The same right in the form of `short-key.ts`: a credential as well. Keys of the same second are the same. */
  readonly shortStreamKey: string
  /** A whole second, as in the claim `exp`. */
  readonly expiresAt: Date
}

/** Claims of a verified stream key. Times are in seconds since 1970. */
export interface StreamKeyClaims {
  readonly streamId: string
  /** Absent in tokens of issuers that write no `iat`: they may have been issued at any time. */
  readonly issuedAtSec?: number
  readonly expiresAtSec: number
  /** Which encoder of the stream the key is for; default: the main one. */
  readonly source?: 'backup'
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
 * Issues a unique stream key that is valid from `now` on, in both forms. Older keys stay valid.
 *
 * @param options.streamId  already checked: no comma, at most 128 characters
 * @param options.secret  value of `JWT_SECRET`; for an encrypted stream, the value that its passphrase is derived from
 * @param options.lifetimeSec  within KEY_LIFETIME_SEC; default: two hours
 * @param options.isBackup  whether the key is for the backup encoder; default: for the main one
 * @param options.encryptedSinceSec  `StreamEncryption.sinceSec`; undefined for a stream without encryption
 */
export async function issueStreamKey(options: {
  readonly streamId: string
  readonly secret: string
  readonly now: Date
  readonly lifetimeSec?: number | undefined
  readonly isBackup?: boolean
  readonly encryptedSinceSec?: number | undefined
}): Promise<StreamKey> {
  const { streamId, secret, isBackup = false, encryptedSinceSec } = options
  const { lifetimeSec = STREAM_KEY_LIFETIME_SEC } = options
  const issuedAtSec = Math.floor(options.now.getTime() / 1000)
  const expiresAtSec = issuedAtSec + lifetimeSec
  const encryption = encryptedSinceSec === undefined ? {} : { enc: encryptedSinceSec }
  const role = isBackup ? { role: 'backup' } : {}
  const token = await new SignJWT({ stream_id: streamId, ...role, ...encryption })
    .setProtectedHeader({ alg: 'HS256' })
    // 96 random bits: with a UUID, a key for the longest stream id exceeds MAX_STREAM_ID_BYTES.
    .setJti(randomBytes(12).toString('base64url'))
    .setIssuedAt(issuedAtSec)
    .setExpirationTime(expiresAtSec)
    .sign(new TextEncoder().encode(secret))
  const claims = { isBackup, issuedAtSec, lifetimeSec, encryptedSinceSec }
  return {
    streamKey: `mode=publish,rid=${streamId},token=${token}`,
    shortStreamKey: createShortKey(streamId, claims, secret),
    expiresAt: new Date(expiresAtSec * 1000),
  }
}

/** Keys that one start-stream call issues. */
export interface IssuedKeys {
  readonly key: StreamKey
  /** Key for the backup encoder, if it was asked for. */
  readonly backupKey?: StreamKey
}

/**
 * Issues a key for the main encoder, and one for the backup encoder if it is asked for.
 *
 * @param options  see `issueStreamKey`
 */
export async function issueStreamKeys(
  options: Omit<Parameters<typeof issueStreamKey>[0], 'isBackup'>,
  { backup = false }: { readonly backup?: boolean },
): Promise<IssuedKeys> {
  const key = await issueStreamKey(options)
  if (!backup) return { key }
  return { key, backupKey: await issueStreamKey({ ...options, isBackup: true }) }
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
  options: VerifyOptions,
): Promise<StreamKeyClaims> {
  const { rid, token } = parseStreamKey(text)
  const { claims, secret, sinceSec } = isShortToken(token)
    ? verifyShort(rid, token, options)
    : await verifyToken(rid, token, options)
  const nowMs = options.now.getTime()
  if ((claims.issuedAtSec ?? 0) * 1000 > nowMs + MAX_CLOCK_SKEW_SEC * 1000) {
    const message =
      'stream key issued in the future: set the clock of its issuer, or of this machine'
    throw new MillraceError('STREAM_KEY_INVALID', { message })
  }
  if (sinceSec === undefined) return claims
  return { ...claims, encryption: deriveEncryption({ streamId: rid, secret, sinceSec }) }
}

interface VerifiedKey {
  readonly claims: Omit<StreamKeyClaims, 'encryption'>
  /** The secret that has signed the key. */
  readonly secret: string
  /** `StreamEncryption.sinceSec` */
  readonly sinceSec: number | undefined
}

function verifyShort(
  streamId: string,
  token: string,
  { secrets, now }: VerifyOptions,
): VerifiedKey {
  for (const secret of secrets) {
    const verified = verifyShortToken(streamId, token, secret)
    if (verified === undefined) continue
    const { isBackup, issuedAtSec, lifetimeSec, encryptedSinceSec } = verified
    const expiresAtSec = issuedAtSec + lifetimeSec
    if (expiresAtSec * 1000 <= now.getTime()) throw new MillraceError('STREAM_KEY_EXPIRED')
    const claims = { streamId, issuedAtSec, expiresAtSec, ...roleOf(isBackup === true) }
    return { claims, secret, sinceSec: encryptedSinceSec }
  }
  throw new MillraceError('STREAM_KEY_INVALID')
}

async function verifyToken(
  rid: string,
  token: string,
  options: VerifyOptions,
): Promise<VerifiedKey> {
  const verified = await verifySignedToken(token, options)
  if (verified === 'expired') throw new MillraceError('STREAM_KEY_EXPIRED')
  if (verified === undefined) throw new MillraceError('STREAM_KEY_INVALID')
  const { payload, secret } = verified
  const { stream_id: streamId, exp: expiresAtSec = 0, iat: issuedAtSec, enc, role } = payload
  if (streamId !== rid) throw new MillraceError('STREAM_KEY_MISMATCH')
  return {
    claims: {
      streamId: rid,
      ...(issuedAtSec !== undefined && { issuedAtSec }),
      expiresAtSec,
      ...roleOf(role === 'backup'),
    },
    secret,
    sinceSec: typeof enc === 'number' ? enc : undefined,
  }
}

function roleOf(isBackup: boolean): Pick<StreamKeyClaims, 'source'> {
  return isBackup ? { source: 'backup' } : {}
}

interface StreamKeyParts {
  /** A stream id, see `isStreamId`. */
  readonly rid: string
  /** A JWT, or the characters of a short key. */
  readonly token: string
  /** Value of `program`, not validated: the program of the transport stream to publish. */
  readonly program?: string
}

/**
 * Parses a short key, or a StreamID in either form: `mode=publish,rid=<stream_id>,token=<jwt>`, or that of SRT's access
 * control guidelines, `#!::r=<stream_id>,m=publish,token=<jwt>`. The token may be a short key, with its stream id or
 * without; so may be the resource alone. Nothing is verified.
 *
 * @throws {MillraceError} `STREAM_KEY_MALFORMED`
 */
export function parseStreamKey(text: string): StreamKeyParts {
  if (Buffer.byteLength(text) > MAX_STREAM_ID_BYTES) {
    throw malformed(`it is longer than ${MAX_STREAM_ID_BYTES} bytes`)
  }
  const plain = withoutFragment(decoded(text))
  const alone = splitShortKey(plain)
  if (alone !== undefined) return alone
  checkForm(plain)
  const { mode, resource, token: given, program } = readStreamIdFields(text)
  if (mode !== 'publish') throw malformed('mode is not publish')
  if (!resource) throw malformed('rid is missing')
  const whole = given === undefined ? resource : given.startsWith(`${resource}-`) ? given : ''
  const { rid, token } = splitShortKey(whole) ?? { rid: resource, token: given }
  if (!isStreamId(rid)) throw malformed(`rid ${STREAM_ID_ALLOWED}`)
  if (!token) throw malformed('token is missing')
  return { rid, token, ...(program !== undefined && { program }) }
}

/** Remedy where the name of a stream stands for its key. */
const WHOLE_KEY =
  'set streamid to the whole stream_key of start-stream, mode=publish,rid=<stream_id>,token=<jwt>'

/**
 * Names the mistakes that users make with a key before any of its fields can be read.
 *
 * @param text  decoded, without a fragment
 * @throws {MillraceError} `STREAM_KEY_MALFORMED`
 */
function checkForm(text: string): void {
  if (text === '') {
    const remedy =
      'set streamid (OBS: Stream Key) to stream_key of start-stream, or start the stream with publish_port'
    throw malformed('the encoder sends no stream id', remedy)
  }
  if (/^["'“”‘’]/.test(text)) {
    throw malformed('it begins with a quotation mark', 'set streamid to the key without quotes')
  }
  if (text.includes('=')) return
  if (/^[\w.-]+[:/](?!\/)/.test(text)) {
    throw malformed('it has the form of another server, such as publish:<name>', WHOLE_KEY)
  }
  if (isStreamId(text)) {
    throw malformed('it is a name without a token, or a short key that was cut', WHOLE_KEY)
  }
}

/** Places of a stream's name, the parser's first: `rid`, `r` of the guidelines' form, and the whole text where it has no fields. */
const NAMED = [
  /(?:^|,|^#!::)rid=([\w.~-]+)(?=$|[,#])/,
  /^#!::(?:.*,)?r=([\w.~-]+)(?=$|[,#])/,
  /^publish:([\w.~-]+)(?:$|:)/,
  /^(?:[\w.-]+\/)?([\w.~-]+)$/,
]

/**
 * Name of the stream that a text is for, well-formed or not, also in quotes: its refusal is reported to that stream.
 *
 * @throws {MillraceError} `STREAM_KEY_MALFORMED` if the percent-encoding is broken
 */
export function streamNamedIn(text: string): string | undefined {
  const plain = decoded(text).replaceAll(/^["'“‘]|["'”’]$/g, '')
  return NAMED.map((named) => named.exec(plain)?.[1]).find((name) => name !== undefined)
}

/** Fields of a StreamID, none of them validated. */
interface StreamIdFields {
  readonly mode: string | undefined
  readonly resource: string | undefined
  readonly token: string | undefined
  readonly program: string | undefined
}

/**
 * Reads name=value pairs in any order, and ignores unknown names, parts that are no pair, such as the rest of a device
 * name with a comma, and what follows a `#` in a value. In the form of SRT's access control guidelines `rid` and
 * `mode` win over `r` and `m`, since some encoders put the whole stream key into `r`, and those of Blackmagic into `u`.
 *
 * @param text  untrusted
 * @throws {MillraceError} `STREAM_KEY_MALFORMED`
 */
export function readStreamIdFields(text: string): StreamIdFields {
  const plain = decoded(text)
  const isGuidelines = plain.startsWith(GUIDELINES_PREFIX)
  const pairs = new Map<string, string>()
  for (const part of plain.slice(isGuidelines ? GUIDELINES_PREFIX.length : 0).split(',')) {
    const pair = isGuidelines ? part.replace(KEY_IN_FIELD, '') : part
    const equals = pair.indexOf('=')
    if (equals < 1) continue
    const key = pair.slice(0, equals)
    if (pairs.has(key)) throw malformed('a name is repeated')
    pairs.set(key, pair.slice(equals + 1))
  }
  if (pairs.size === 0) throw malformed('no part is name=value')
  const valueOf = (key: string, short = key) => {
    const value = pairs.get(key) ?? (isGuidelines ? pairs.get(short) : undefined)
    return value && withoutFragment(value)
  }
  return {
    mode: valueOf('mode', 'm'),
    resource: valueOf('rid', 'r'),
    token: valueOf('token'),
    program: valueOf('program'),
  }
}

/**
 * Decodes a key that is percent-encoded as a whole, and so contains no `=`. Encoders send such a key if the user
 * encoded the URL and the encoder does not decode it (libsrt's URL parser does not; ffmpeg's does).
 */
function decoded(text: string): string {
  const key = withoutFragment(text)
  if (key.includes('=')) return text
  try {
    return decodeURIComponent(key)
  } catch {
    throw malformed('its percent-encoding is broken')
  }
}

function withoutFragment(text: string): string {
  return text.replace(FRAGMENT, '')
}

const KEY_OR_SHORT_KEY =
  'set streamid to mode=publish,rid=<stream_id>,token=<jwt>, or to the short key'

function malformed(what: string, remedy = KEY_OR_SHORT_KEY): MillraceError {
  const message = `stream key malformed, ${what}: ${remedy}`
  return new MillraceError('STREAM_KEY_MALFORMED', { message })
}
