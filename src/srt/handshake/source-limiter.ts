/**
 * How many handshakes of a kind are answered: so many from one source, from its network, and in all. A caller that gets
 * no answer repeats its handshake every 250 ms, twelve times, so that what is dropped here delays it and no more.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { TokenBucket } from '../../token-bucket.ts'
import { networkOf } from './source-network.ts'

/** Sources told apart. What more of them send within a second meets the limits of wider levels alone. */
const MAX_SOURCES = 4096

interface Level {
  /** Name that a source shares with those it is limited together with. */
  readonly nameOf: (address: string) => string
  readonly perSec: number
  /** Answered at once after a time of quiet; as many as in a second unless told. */
  readonly burst?: number
}

/**
 * Inductions (draft-sharabayko-srt 4.3.1.1): each costs a hash and a datagram, and may name as its source somebody who
 * never asked. Hundreds of encoders behind one address may start at once.
 */
export const INDUCTION_LEVELS: readonly Level[] = [
  { nameOf: networkOf, perSec: 1000 },
  { nameOf: () => 'all', perSec: 5000 },
]

/**
 * Conclusions with a good cookie: their source is true, but each costs the check of a signature, which takes ten times
 * as long as all before it. Those of an address leave half of what its network may send to the neighbors, and those of a
 * network most of all to other networks. 150 encoders behind one address are let in at once, 20 a second from then on.
 */
export const CONCLUSION_LEVELS: readonly Level[] = [
  { nameOf: (address) => address, perSec: 20, burst: 150 },
  { nameOf: networkOf, perSec: 40, burst: 300 },
  { nameOf: () => 'all', perSec: 500, burst: 1000 },
]

export class SourceLimiter {
  readonly #levels: readonly (Level & { readonly buckets: LRUCache<string, TokenBucket> })[]

  /** @param levels  the narrowest first: what it drops takes nothing from the wider ones */
  constructor(levels: readonly Level[]) {
    this.#levels = levels.map((level) => ({
      ...level,
      buckets: new LRUCache({ max: MAX_SOURCES }),
    }))
  }

  /** @returns whether to answer */
  admit(address: string, nowUs: number): boolean {
    return this.#levels.every(({ nameOf, perSec, burst, buckets }) => {
      const name = nameOf(address)
      let bucket = buckets.get(name)
      if (bucket === undefined) {
        bucket = new TokenBucket(perSec, nowUs, burst)
        buckets.set(name, bucket)
      }
      return bucket.take(nowUs)
    })
  }
}
