/**
 * Seeded randomness: a failing test names its seed, which reproduces the failure.
 *
 * @module
 */

export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** Uniform integer in [0, end). */
  below(end: number): number
  /** True with a given probability; always draws exactly one number. */
  chance(probability: number): boolean
  bytes(length: number): Buffer
}

/**
 * A generator of 32-bit numbers with 32 bits of state (Mulberry32).
 *
 * @param seed  any number, of which the low 32 bits are used
 */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end: number) => Math.floor(next() * end)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  }
}
