/**
 * How many inductions are answered (draft-sharabayko-srt 4.3.1.1). Each costs a hash and a datagram, and may name as its
 * source somebody who never asked. A caller that gets no answer asks again every 250 ms, twelve times: one that a flood
 * of four times the limit hides most likely comes through.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import { networkOf } from './source-network.ts'
import { TokenBucket } from '../token-bucket.ts'

const PER_SEC = 5000

/** Hundreds of encoders behind one address may start at once. */
const PER_NETWORK_PER_SEC = 1000

/** Networks told apart. More than these within a second meet the limit of all. */
const MAX_NETWORKS = 4096

export class InductionLimiter {
  readonly #all: TokenBucket
  readonly #networks = new LRUCache<string, TokenBucket>({ max: MAX_NETWORKS })

  constructor(nowUs: number) {
    this.#all = new TokenBucket(PER_SEC, nowUs)
  }

  /** @returns whether to answer; what one network sends in excess costs the others nothing */
  admit(address: string, nowUs: number): boolean {
    const network = networkOf(address)
    let bucket = this.#networks.get(network)
    if (bucket === undefined) {
      bucket = new TokenBucket(PER_NETWORK_PER_SEC, nowUs)
      this.#networks.set(network, bucket)
    }
    return bucket.take(nowUs) && this.#all.take(nowUs)
  }
}
