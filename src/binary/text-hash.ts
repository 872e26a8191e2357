/**
 * Hash of texts, to count distinct ones.
 *
 * @module
 */

/**
 * FNV-1a of the texts with a salt for its offset basis, then the finalizer of MurmurHash3, which spreads it over all bits.
 * 0.4 µs for an address and a User-Agent, against 0.7 µs with SHA-256 of `node:crypto`. It keeps no secret.
 *
 * @returns 32 bits, signed
 */
export function hashTexts(texts: readonly string[], salt: number): number {
  let hash = salt
  for (const text of texts) {
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
    }
    // Keeps `['a', 'b']` apart from `['ab']`.
    hash = Math.imul(hash ^ 0xffff, 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
