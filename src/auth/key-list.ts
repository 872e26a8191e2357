/**
 * Stream keys as operators see them: the id of a key, and the list of those of a stream.
 *
 * An id is `<time of issue>-<lifetime>-<encoder>`, in seconds. It has what the list says of the key anyhow, and nothing that
 * proves the key; so no process stores which key has which id, and one that has not issued a key can revoke it. Both
 * forms of a key have the same id, and so have keys of one encoder with the same second of issue and lifetime.
 *
 * @module
 */
import type { StreamKeyClaims } from './stream-key.ts'

/** Maximum number of keys that a list has: those that were issued or used last. */
export const MAX_LISTED_KEYS = 50

/** One text for each key: leading zeros would name it by an id that no revocation compares equal. */
export const KEY_ID = /^(0|[1-9]\d{0,11})-(0|[1-9]\d{0,11})-(main|backup)$/

/** Issuers other than Millrace may write any times. */
const MAX_SEC = 999_999_999_999

/** Claims of a key without those that its id does not have. */
export type KeyFacts = Pick<StreamKeyClaims, 'issuedAtSec' | 'expiresAtSec' | 'source'>

/** Key that holds, as the API has it. */
export interface ListedKey {
  readonly keyId: string
  readonly source: 'main' | 'backup'
  /** Absent for a key that does not tell. */
  readonly issuedAt?: Date
  readonly expiresAt: Date
  /** When an encoder has connected with it last; absent if none has. */
  readonly lastUsedAt?: Date
}

/** A key without time of issue has the id of one that was issued in 1970. */
export function keyIdOf({ issuedAtSec = 0, expiresAtSec, source }: KeyFacts): string {
  const issued = wholeSec(issuedAtSec)
  return `${issued}-${wholeSec(expiresAtSec - issued)}-${source ?? 'main'}`
}

/** @param keyId  untrusted */
export function parseKeyId(keyId: string): KeyFacts | undefined {
  const [, issued, lifetime, source] = KEY_ID.exec(keyId) ?? []
  if (issued === undefined) return undefined
  const expiresAtSec = Number(issued) + Number(lifetime)
  return {
    issuedAtSec: Number(issued),
    expiresAtSec,
    ...(source === 'backup' && { source }),
  }
}

export class KeyList {
  readonly #isRevoked: (key: KeyFacts) => boolean
  /** Time of the latest use in milliseconds since 1970, 0 without any, by key id. */
  readonly #usedMs = new Map<string, number>()

  constructor(isRevoked: (key: KeyFacts) => boolean) {
    this.#isRevoked = isRevoked
  }

  /**
   * Adds a key, or its use.
   *
   * @param usedMs  time of the use; default: it is issued
   */
  add(keyId: string, wallMs: number, usedMs = 0): void {
    this.#usedMs.set(keyId, Math.max(usedMs, this.#usedMs.get(keyId) ?? 0))
    if (this.#usedMs.size > MAX_LISTED_KEYS) this.#dropBad(wallMs)
    if (this.#usedMs.size <= MAX_LISTED_KEYS) return
    const [oldest] = [...this.#usedMs].toSorted((one, other) => touchedMs(one) - touchedMs(other))
    this.#usedMs.delete(oldest![0])
  }

  /** Times of the latest use of the keys that hold, in milliseconds since 1970, 0 without any, by key id. */
  uses(wallMs: number): Record<string, number> {
    this.#dropBad(wallMs)
    return Object.fromEntries(this.#usedMs)
  }

  /** Keys that hold, the one issued last first. */
  list(wallMs: number): ListedKey[] {
    const keys = Object.entries(this.uses(wallMs)).map(describe)
    return keys.toSorted((one, other) => issuedMs(other) - issuedMs(one))
  }

  /** Drops keys that have expired or are revoked. */
  #dropBad(wallMs: number): void {
    for (const keyId of this.#usedMs.keys()) {
      const key = parseKeyId(keyId)
      const isGood = key && key.expiresAtSec * 1000 > wallMs && !this.#isRevoked(key)
      if (!isGood) this.#usedMs.delete(keyId)
    }
  }
}

function describe([keyId, usedMs]: readonly [string, number]): ListedKey {
  const { issuedAtSec = 0, expiresAtSec, source } = parseKeyId(keyId)!
  return {
    keyId,
    source: source ?? 'main',
    ...(issuedAtSec > 0 && { issuedAt: new Date(issuedAtSec * 1000) }),
    expiresAt: new Date(expiresAtSec * 1000),
    ...(usedMs > 0 && { lastUsedAt: new Date(usedMs) }),
  }
}

function touchedMs([keyId, usedMs]: readonly [string, number]): number {
  return Math.max(usedMs, (parseKeyId(keyId)?.issuedAtSec ?? 0) * 1000)
}

function issuedMs({ issuedAt }: ListedKey): number {
  return issuedAt?.getTime() ?? 0
}

function wholeSec(sec: number): number {
  return Math.min(Math.max(0, Math.floor(sec)), MAX_SEC)
}
