/**
 * Stream keys that were verified before. The signature of a key is checked once while it is remembered, which takes a
 * hundred times as long as to remember it; its expiry is checked at every call. Whether its stream runs, and whether the
 * key was revoked, is for the caller to ask.
 *
 * Keys are credentials: what is kept of them is a hash.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { MillraceError } from '../errors.ts'
import { verifyStreamKey, type StreamKeyClaims } from './stream-key.ts'

/** Remembered of either kind, so that no flood of bad keys makes the good ones forgotten. */
const MAX_KEYS = 4096

/** A refusal is looked at anew then: the token may say that it is not valid yet. */
const REFUSAL_MS = 60_000

interface Refusal {
  readonly error: MillraceError
  readonly untilMs: number
}

export class VerifiedKeys {
  readonly #secrets: readonly string[]
  readonly #valid = new LRUCache<string, StreamKeyClaims>({ max: MAX_KEYS })
  readonly #refused = new LRUCache<string, Refusal>({ max: MAX_KEYS })

  /** @param secrets  `JWT_SECRET`, as for `verifyStreamKey` */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets
  }

  /**
   * As `verifyStreamKey`, which it calls for keys that it does not know.
   *
   * @param text  untrusted
   * @throws {MillraceError} as `verifyStreamKey`
   */
  async verify(text: string, now: Date): Promise<StreamKeyClaims> {
    const hash = createHash('sha256').update(text).digest('base64')
    const known = this.#valid.get(hash)
    if (known !== undefined) {
      if (known.expiresAtSec * 1000 <= now.getTime()) throw new MillraceError('STREAM_KEY_EXPIRED')
      return known
    }
    const refusal = this.#refused.get(hash)
    if (refusal !== undefined && now.getTime() < refusal.untilMs) throw refusal.error
    try {
      const claims = await verifyStreamKey(text, { secrets: this.#secrets, now })
      this.#valid.set(hash, claims)
      return claims
    } catch (error) {
      if (error instanceof MillraceError) {
        this.#refused.set(hash, { error, untilMs: now.getTime() + REFUSAL_MS })
      }
      throw error
    }
  }
}
