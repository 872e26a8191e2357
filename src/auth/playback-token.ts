/**
 * Playback tokens: `{expires}.{signature}`, or `{expires}.ip.{signature}` for one address.
 *
 * `expires` is in seconds since 1970. The signature is the HMAC-SHA256 of `playback:{stream_id}:{expires}`, followed by
 * `:{address}` in the second form, in base64url.
 *
 * @module
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { networkName } from '../binary/ip-address.ts'
import type { ErrorCode } from '../errors.ts'

/** What a playback token gives access to. */
export interface PlaybackTokenOptions {
  readonly streamId: string
  /** Value of `PLAYBACK_SECRET`; the newest of two. */
  readonly secret: string
  /** Time from which the token is refused; fractions of a second are dropped. */
  readonly expiresAt: Date
  /** The only address that may use the token, or an IPv6 address whose /64 may use it; default: any address. */
  readonly address?: string | undefined
}

const TOKEN = /^(\d{1,12})(\.ip)?\.([A-Za-z0-9_-]{43})$/

/** Capacity of the cache: about 3 MB. Each further viewer with a token of its own costs an HMAC per request. */
const MAX_TOKENS = 10_000

/**
 * Signs a token for the path `/t/{token}/video/{stream_id}/playlist.m3u8`.
 *
 * @returns a credential: never log it
 * @throws {TypeError} for an empty secret, an invalid date, or text that is no IP address
 */
export function signPlaybackToken(options: PlaybackTokenOptions): string {
  const { streamId, secret, expiresAt, address } = options
  const expiresSec = Math.floor(expiresAt.getTime() / 1000)
  if (secret === '') throw new TypeError('secret is empty: expected the value of PLAYBACK_SECRET')
  if (!Number.isFinite(expiresSec)) throw new TypeError('expiresAt is not a valid date')
  if (address !== undefined && isIP(address) === 0) {
    throw new TypeError('address is not an IPv4 or IPv6 address')
  }
  const text = signedText(streamId, String(expiresSec), address && addressName(address))
  const form = address === undefined ? '' : '.ip'
  return `${expiresSec}${form}.${signatureOf(text, secret)}`
}

/** Limits that a token puts on its use. */
export interface PlaybackTokenLimits {
  /** Time from which the token is refused, in seconds since 1970. */
  readonly expiresSec: number
  /** Whether the token is for one address. */
  readonly isBound: boolean
}

/** Request for a stream with a token. */
export interface TokenUse {
  readonly streamId: string
  readonly nowMs: number
  /** Reads the address of the client; called for bound tokens only. */
  readonly readAddress: () => string
}

/** Verifies playback tokens. Verified tokens are cached: a viewer costs one HMAC, not one per request. */
export class PlaybackTokens {
  readonly #readSecrets: () => readonly string[]
  /** Secrets that signed tokens, by the token with the stream and the address that it was verified for. */
  readonly #signers = new LRUCache<string, string>({ max: MAX_TOKENS })

  /** @param readSecrets  reads the values of `PLAYBACK_SECRET`, any of which may have signed a token */
  constructor(readSecrets: () => readonly string[]) {
    this.#readSecrets = readSecrets
  }

  /**
   * Verifies a token, which is untrusted.
   *
   * @returns limits of a token that allows the use, or why it does not
   */
  verify(token: string, use: TokenUse): PlaybackTokenLimits | ErrorCode {
    const [, expires, bound, signature] = TOKEN.exec(token) ?? []
    if (expires === undefined || signature === undefined) return 'PLAYBACK_TOKEN_INVALID'
    const text = signedText(use.streamId, expires, bound && addressName(use.readAddress()))
    const key = `${signature}${text}`
    const secrets = this.#readSecrets()
    const known = this.#signers.get(key)
    if (known === undefined || !secrets.includes(known)) {
      const given = Buffer.from(signature)
      const signer = secrets.find((secret) =>
        timingSafeEqual(Buffer.from(signatureOf(text, secret)), given),
      )
      if (signer === undefined) return 'PLAYBACK_TOKEN_INVALID'
      this.#signers.set(key, signer)
    }
    const expiresSec = Number(expires)
    if (expiresSec * 1000 <= use.nowMs) return 'PLAYBACK_TOKEN_EXPIRED'
    return { expiresSec, isBound: bound !== undefined }
  }
}

/** Unambiguous, since no stream id contains a colon. */
function signedText(streamId: string, expires: string, address: string | undefined): string {
  return `playback:${streamId}:${expires}${address === undefined ? '' : `:${address}`}`
}

/** IPv4 in dotted form; the first 64 bits of IPv6 in hexadecimal, since hosts change the others. */
function addressName(address: string): string {
  return networkName(address, 4, 8)
}

/** @returns 43 characters, like each signature that `TOKEN` matches */
function signatureOf(text: string, secret: string): string {
  return createHmac('sha256', secret).update(text).digest('base64url')
}
