/**
 * Rate limits of handshakes: for each source address, for its network, and for all sources together. A caller without a
 * response repeats its handshake every 250 ms, twelve times, so a dropped handshake only delays it.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { TokenBucket } from '../../timing/token-bucket.ts'
import { networkName } from '../../binary/ip-address.ts'

/** Max number of groups tracked at each level; the least recently used one is forgotten. */
const MAX_SOURCES = 4096

interface Level {
  /** Names the group of addresses that share one limit. */
  readonly groupOf: (address: string) => string
  /** Handshakes admitted per second. */
  readonly perSec: number
  /** Handshakes admitted at once after a quiet period; by default `perSec`. */
  readonly burst?: number
}

/**
 * Limits of inductions (draft-sharabayko-srt 4.3.1.1). Each costs a hash and a datagram, and its source may be forged.
 * The limit of a network is high, since hundreds of encoders behind one address may start at once.
 */
export const INDUCTION_LEVELS: readonly Level[] = [
  { groupOf: networkOf, perSec: 1000 },
  { groupOf: () => 'all', perSec: 5000 },
]

/**
 * Limits of conclusions with a valid cookie. Their source is genuine, but each costs the check of a signature, which
 * takes ten times as long as all earlier steps together. One address gets half of its network's limit, and one network
 * a fraction of the total. 150 encoders behind one address are admitted at once, then 20 per second.
 */
export const CONCLUSION_LEVELS: readonly Level[] = [
  { groupOf: (address) => address, perSec: 20, burst: 150 },
  { groupOf: networkOf, perSec: 40, burst: 300 },
  { groupOf: () => 'all', perSec: 500, burst: 1000 },
]

export class SourceLimiter {
  readonly #levels: readonly (Level & { readonly buckets: LRUCache<string, TokenBucket> })[]

  /** @param levels  narrowest first, so that a handshake dropped at one level does not count at wider levels */
  constructor(levels: readonly Level[]) {
    this.#levels = levels.map((level) => ({
      ...level,
      buckets: new LRUCache({ max: MAX_SOURCES }),
    }))
  }

  /** @returns whether all levels admit a handshake from this address */
  admit(address: string, nowUs: number): boolean {
    return this.#levels.every(({ groupOf, perSec, burst, buckets }) => {
      const group = groupOf(address)
      let bucket = buckets.get(group)
      if (bucket === undefined) {
        bucket = new TokenBucket(perSec, nowUs, burst)
        buckets.set(group, bucket)
      }
      return bucket.take(nowUs)
    })
  }
}

/** Limits of all sockets of a listener together: a caller of many ports gets no more than one of a single port. */
export class HandshakeLimits {
  readonly inductions = new SourceLimiter(INDUCTION_LEVELS)
  readonly conclusions = new SourceLimiter(CONCLUSION_LEVELS)
}

/**
 * Network of a source address. A host can often send from many addresses of one network: an access provider assigns each
 * customer a /56 (RFC 6177).
 *
 * @returns name of the /24 of an IPv4 address (also of `::ffff:192.0.2.1`), or of the /56 of an IPv6 address
 */
export function networkOf(address: string): string {
  return networkName(address, 3, 7)
}
