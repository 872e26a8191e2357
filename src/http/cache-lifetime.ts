/**
 * Lifetime of a file in caches, as Cache-Control says it (RFC 9111 5.2.2).
 *
 * @module
 */
import type { StreamFile } from '../contract/streams.ts'

export interface CacheLifetime {
  /** max-age, in seconds. */
  readonly ownSec: number
  /** s-maxage, in seconds; undefined: the same. */
  readonly sharedSec?: number | undefined
}

/**
 * @param isBlocking  whether the URL names media that the file has: the reply never becomes wrong, but browsers must not
 *   keep it, since video.js asks with the same URL again until the next segment has a part
 */
export function lifetimeOf(
  { maxAgeSec, blocking }: Pick<StreamFile, 'maxAgeSec' | 'blocking'>,
  isBlocking: boolean,
): CacheLifetime {
  if (!isBlocking || blocking === undefined) return { ownSec: maxAgeSec }
  return { ownSec: 0, sharedSec: blocking.maxAgeSec }
}

export function formatLifetime({ ownSec, sharedSec }: CacheLifetime): string {
  return `max-age=${ownSec}${sharedSec === undefined ? '' : `, s-maxage=${sharedSec}`}`
}
