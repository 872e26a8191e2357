/**
 * Key encryption key (KEK): derived from the passphrase, it wraps the keys that encrypt payloads
 * (draft-sharabayko-srt 6.1.4, 6.1.5; RFC 8018, RFC 3394).
 *
 * @module
 */
import { createCipheriv, createDecipheriv, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { KeyBytes } from '../wire/key-material.ts'
import { isPassphrase, PASSPHRASE_LENGTH } from '../wire/limits.ts'
import { Turns } from '../turns.ts'

const ITERATIONS = 2048

/** Default initial value (RFC 3394 2.2.3.1), which unwrapping verifies. */
const INITIAL_VALUE = Buffer.alloc(8, 0xa6)

/** Max number of concurrent derivations. Each takes 0.7 ms of a libuv thread; DNS and files share the four threads. */
const MAX_RUNNING = 2

/** Max number of derived keys in the cache. */
const MAX_CACHED = 256

const pbkdf2Async = promisify(pbkdf2)

/** Key derived from passphrase and salt, the same for all key changes of a connection. */
export interface KeyEncryptionKey {
  readonly key: Buffer
  readonly salt: Buffer
}

/** @throws {RangeError} if `isPassphrase` is false */
export function checkPassphrase(text: string): void {
  if (isPassphrase(text)) return
  throw new RangeError(
    `passphrase has ${Buffer.byteLength(text)} bytes, SRT allows ${PASSPHRASE_LENGTH}`,
  )
}

/** @throws {RangeError} if `isPassphrase` is false */
export async function deriveKey(
  passphrase: string,
  salt: Buffer,
  keyBytes: KeyBytes,
): Promise<KeyEncryptionKey> {
  checkPassphrase(passphrase)
  // LSB(64, salt) in 6.1.4 means the last 8 bytes. Every implementation uses 2048 iterations of HMAC-SHA-1.
  const key = await pbkdf2Async(passphrase, salt.subarray(8), ITERATIONS, keyBytes, 'sha1')
  return { key, salt }
}

/** @param keys  one key, or two concatenated */
export function wrapKeys({ key }: KeyEncryptionKey, keys: Buffer): Buffer {
  return createCipheriv(`id-aes${key.length * 8}-wrap`, key, INITIAL_VALUE).update(keys)
}

/** @returns undefined if `key` is not the one that wrapped the keys */
export function unwrapKeys({ key }: KeyEncryptionKey, wrapped: Buffer): Buffer | undefined {
  try {
    return createDecipheriv(`id-aes${key.length * 8}-wrap`, key, INITIAL_VALUE).update(wrapped)
  } catch {
    return undefined
  }
}

/** Derives the key encryption keys for all callers, `MAX_RUNNING` at a time, and caches them. */
export class KeyDeriver {
  readonly #cached = new LRUCache<string, KeyEncryptionKey>({ max: MAX_CACHED })
  readonly #turns = new Turns(MAX_RUNNING)

  /**
   * @param signal  aborts a derivation that has not begun
   * @throws {RangeError} if `isPassphrase` is false
   * @throws {BacklogError} if too many wait
   * @throws the signal's reason
   */
  derive(
    passphrase: string,
    salt: Buffer,
    keyBytes: KeyBytes,
    signal: AbortSignal,
  ): Promise<KeyEncryptionKey> {
    const name = `${keyBytes} ${salt.toString('hex')} ${passphrase}`
    return this.#turns.run(async () => {
      // An earlier turn may have derived it.
      const cached = this.#cached.get(name)
      if (cached !== undefined) return cached
      const derived = await deriveKey(passphrase, salt, keyBytes)
      this.#cached.set(name, derived)
      return derived
    }, signal)
  }
}
