/**
 * The key that comes of the passphrase, and protects those that encrypt payloads on their way to the peer
 * (draft-sharabayko-srt 6.1.4, 6.1.5; RFC 8018, RFC 3394).
 *
 * @module
 */
import { createCipheriv, createDecipheriv, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { KeyBytes } from '../wire/key-material.ts'
import { isPassphrase, PASSPHRASE_LENGTH } from '../wire/limits.ts'

const ITERATIONS = 2048

/** RFC 3394 2.2.3.1: what a right key unwraps to. */
const INITIAL_VALUE = Buffer.alloc(8, 0xa6)

/** A derivation takes 0.7 ms of a thread. The pool has four, and others need them too. */
const MAX_RUNNING = 2

/** Derived keys that are remembered. */
const MAX_REMEMBERED = 256

const pbkdf2Async = promisify(pbkdf2)

/** What a passphrase and a salt make; good for as long as the salt is kept, over any number of key changes. */
export interface KeyEncryptionKey {
  readonly key: Buffer
  readonly salt: Buffer
}

/** @throws {RangeError} */
export function checkPassphrase(text: string): void {
  if (isPassphrase(text)) return
  throw new RangeError(`a passphrase takes ${PASSPHRASE_LENGTH}, not ${Buffer.byteLength(text)}`)
}

/** @throws {RangeError} where the passphrase is none */
export async function deriveKey(
  passphrase: string,
  salt: Buffer,
  keyBytes: KeyBytes,
): Promise<KeyEncryptionKey> {
  checkPassphrase(passphrase)
  // The draft's LSB(64, salt). 2048 rounds of SHA-1 are what every peer computes.
  const key = await pbkdf2Async(passphrase, salt.subarray(8), ITERATIONS, keyBytes, 'sha1')
  return { key, salt }
}

/** @param keys  one key, or two in a row */
export function wrapKeys({ key }: KeyEncryptionKey, keys: Buffer): Buffer {
  return createCipheriv(`id-aes${key.length * 8}-wrap`, key, INITIAL_VALUE).update(keys)
}

/** @returns undefined where the key is not the one it was wrapped with */
export function unwrapKeys({ key }: KeyEncryptionKey, wrapped: Buffer): Buffer | undefined {
  try {
    return createDecipheriv(`id-aes${key.length * 8}-wrap`, key, INITIAL_VALUE).update(wrapped)
  } catch {
    return undefined
  }
}

/** Derives keys for many callers, a few at a time, and remembers them. */
export class KeyDeriver {
  readonly #remembered = new LRUCache<string, KeyEncryptionKey>({ max: MAX_REMEMBERED })
  readonly #waiting: (() => void)[] = []
  #running = 0

  /**
   * @param signal  gives up what still waits for its turn
   * @throws {RangeError} where the passphrase is none
   * @throws the signal's reason
   */
  async derive(
    passphrase: string,
    salt: Buffer,
    keyBytes: KeyBytes,
    signal: AbortSignal,
  ): Promise<KeyEncryptionKey> {
    const name = `${keyBytes} ${salt.toString('hex')} ${passphrase}`
    while (this.#running === MAX_RUNNING) {
      await new Promise<void>((go) => this.#waiting.push(go))
    }
    signal.throwIfAborted()
    const remembered = this.#remembered.get(name)
    if (remembered !== undefined) return remembered
    this.#running++
    try {
      const derived = await deriveKey(passphrase, salt, keyBytes)
      this.#remembered.set(name, derived)
      return derived
    } finally {
      this.#running--
      // All of them look again, in their order: who has given up meanwhile takes nobody's turn.
      for (const go of this.#waiting.splice(0)) go()
    }
  }
}
