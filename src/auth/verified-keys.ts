/**
 * Cache of verified stream keys: checking a signature takes a hundred times as long as a look-up. Expiry is checked at
 * every call. The caller checks whether the stream runs and whether the key was revoked.
 *
 * Stream keys are credentials: only their hashes are stored.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { MillraceError } from '../errors.ts'
import { verifyStreamKey, type StreamKeyClaims } from './stream-key.ts'

/** Capacity of each cache. Refused keys have a cache of their own, so that a flood of them evicts no valid key. */
const MAX_KEYS = 4096

/** Lifetime of a cached refusal. It is limited, since a token may become valid later (claim `nbf`). */
const REFUSAL_MS = 60_000

interface Refusal {
  readonly error: MillraceError
  readonly untilMs: number
}

export class VerifiedKeys {
  readonly #secrets: readonly string[]
  readonly #valid = new LRUCache<string, StreamKeyClaims>({ max: MAX_KEYS })
  readonly #refused = new LRUCache<string, Refusal>({ max: MAX_KEYS })

  /** @param secrets  values of `JWT_SECRET`, as for `verifyStreamKey` */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets
  }

  /**
   * Verifies a key: from the cache, else with `verifyStreamKey`.
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
