/**
 * Revoked stream keys: for each stream, the time of issue (claim `iat`) below which keys are refused, and the ids of keys
 * that are refused alone.
 *
 * @module
 */
import { keyIdOf, parseKeyId } from './key-list.ts'
import { MAX_CLOCK_SKEW_SEC, type StreamKeyClaims } from './stream-key.ts'

/** Maximum number of remembered floors: no time ends one, since issuers other than Millrace may write any `exp`. */
const MAX_FLOORS = 100_000

/** Maximum number of keys that are refused alone. */
const MAX_KEYS = 100_000

/**
 * Inputs: `revoke` and `revokeKey` for each revocation, `issueTime` for each new key, `isRevoked` for each verified key.
 */
export class KeyFloors {
  /** Lowest accepted `iat` by stream id, in the order of revocation. */
  readonly #floors = new Map<string, number>()
  /**
   * Lowest accepted `iat` of all streams. Floors beyond MAX_FLOORS are removed and raise this one: valid keys of other
   * streams may then be refused, but no revoked key is accepted.
   */
  #floorOfAllSec = 0
  /** Stream id and key id of keys that are refused alone, in the order of revocation. */
  readonly #keys = new Set<string>()

  /** Revokes all keys of the stream issued so far. */
  revoke(streamId: string, wallMs: number): void {
    const prefix = `${streamId} `
    const revokedSec = new Set<number | undefined>()
    for (const key of this.#keys)
      if (key.startsWith(prefix)) revokedSec.add(parseKeyId(key.slice(prefix.length))?.issuedAtSec)
    let latestSec = Math.max(Math.floor(wallMs / 1000), this.#floorSec(streamId))
    // Keys may have been issued later: see `issueTime`.
    while (revokedSec.has(latestSec)) latestSec++
    this.raise(streamId, latestSec + 1)
  }

  /** Revokes all keys of the stream issued before `floorSec`, as another node has done. */
  raise(streamId: string, floorSec: number): void {
    if (floorSec <= this.#floorSec(streamId)) return
    this.#floors.delete(streamId)
    this.#floors.set(streamId, floorSec)
    for (const [oldest, oldestSec] of this.#floors) {
      if (this.#floors.size <= MAX_FLOORS) break
      this.#floorOfAllSec = Math.max(this.#floorOfAllSec, oldestSec)
      this.#floors.delete(oldest)
    }
  }

  /**
   * Revokes one key of the stream. Beyond MAX_KEYS the one that was revoked first, unless it has expired, raises the floor
   * of its stream: older keys are refused with it, but no revoked key is accepted.
   *
   * @param keyId  see `key-list.ts`
   */
  revokeKey(streamId: string, keyId: string, wallMs: number): void {
    this.#keys.add(`${streamId} ${keyId}`)
    if (this.#keys.size <= MAX_KEYS) return
    const [oldest = ''] = this.#keys
    this.#keys.delete(oldest)
    const [id = '', oldKeyId = ''] = oldest.split(' ')
    const { issuedAtSec = 0, expiresAtSec = 0 } = parseKeyId(oldKeyId) ?? {}
    // Any text of the right form may be revoked, whatever its time of issue.
    const latestSec = Math.floor(wallMs / 1000) + MAX_CLOCK_SKEW_SEC
    const floorSec = Math.min(issuedAtSec, latestSec) + 1
    if (expiresAtSec * 1000 > wallMs) this.raise(id, floorSec)
  }

  /** A key without time of issue is revoked by any revocation of all keys: it may be older. */
  isRevoked({ streamId, ...key }: StreamKeyClaims): boolean {
    if ((key.issuedAtSec ?? 0) < this.#floorSec(streamId)) return true
    return this.#keys.has(`${streamId} ${keyIdOf(key)}`)
  }

  /**
   * Time of issue for a new key: `wallMs` or, if that is below the floor of the stream, the floor; later if a key with the
   * same id is revoked.
   */
  issueTime(streamId: string, wallMs: number, lifetimeSec: number): Date {
    let ms = Math.max(wallMs, this.#floorSec(streamId) * 1000)
    while (this.#isIdRevoked(streamId, Math.floor(ms / 1000), lifetimeSec)) ms += 1000
    return new Date(ms)
  }

  #isIdRevoked(streamId: string, issuedAtSec: number, lifetimeSec: number): boolean {
    const times = { issuedAtSec, expiresAtSec: issuedAtSec + lifetimeSec }
    const keys = [times, { ...times, source: 'backup' as const }]
    return keys.some((key) => this.#keys.has(`${streamId} ${keyIdOf(key)}`))
  }

  #floorSec(streamId: string): number {
    return Math.max(this.#floors.get(streamId) ?? 0, this.#floorOfAllSec)
  }
}
