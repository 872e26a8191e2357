/**
 * Revoked stream keys of the registry in memory, beside its streams: they outlast these, and are there for streams that nobody
 * has started. `model.test.ts` holds it equal to the scripts.
 *
 * @module
 */

/** Maximum difference between the clocks of two nodes, in milliseconds. */
export const CLOCKS_MS = 60_000
/** Stream keys in the record of a stream, and revoked ones beside it. */
export const MAX_KEYS = 50

export class RevocationModel {
  readonly #max: number
  /** Times of issue in seconds below which all keys of a stream are revoked, and that of the streams without their own. */
  floors = new Map<string, number>()
  floorOfAll: number | undefined
  /** Stream id and key id of keys that are revoked alone. */
  revoked = new Set<string>()

  /** @param max  see `RegistryRules.maxFloors` */
  constructor(max: number) {
    this.#max = max
  }

  /** Time of issue in seconds below which the keys of a stream are revoked; 0: none is. */
  floorOf(id: string): number {
    return Math.max(this.floors.get(id) ?? 0, this.floorOfAll ?? 0)
  }

  /** Whether the key is revoked alone. */
  has(id: string, keyId: string): boolean {
    return this.revoked.has(`${id} ${keyId}`)
  }

  /** Ids of the keys of a stream that are revoked alone, in order. */
  keysOf(id: string): string[] {
    return [...this.revoked]
      .filter((each) => each.startsWith(`${id} `))
      .map((each) => each.slice(id.length + 1))
      .toSorted((a, b) => (a < b ? -1 : 1))
  }

  /** Keys that are revoked alone and their expiry in seconds, the first one first. */
  revokedUntil(): [string, number][] {
    return [...this.revoked]
      .map((each): [string, number] => [each, timesOf(each.split(' ')[1]!).expiresMs / 1000])
      .toSorted(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))
  }

  /** Revokes one key, and forgets those that have expired. */
  revoke(id: string, keyId: string, nowMs: number): void {
    this.revoked.add(`${id} ${keyId}`)
    for (const each of this.keysOf(id))
      if (timesOf(each).expiresMs <= nowMs) this.revoked.delete(`${id} ${each}`)
    for (const [each, sec] of this.revokedUntil().slice(0, 10))
      if (sec * 1000 <= nowMs) this.revoked.delete(each)
    const own = this.keysOf(id)
    const [first] = this.revoked.size > this.#max ? this.revokedUntil() : []
    const excess = own.length > MAX_KEYS ? `${id} ${own[0]}` : first?.[0]
    if (excess === undefined) return
    const [other = '', key = ''] = excess.split(' ')
    const latestMs = Math.floor(nowMs / 1000) * 1000 + CLOCKS_MS
    this.#raiseFloor(other, Math.min(timesOf(key).issuedMs, latestMs) / 1000 + 1)
    this.revoked.delete(excess)
  }

  /** Revokes all keys of a stream that were issued up to this time. */
  revokeAll(id: string, issuedUntilMs: number): void {
    this.#raiseFloor(id, Math.max(Math.floor(issuedUntilMs / 1000), this.floorOf(id)) + 1)
  }

  #raiseFloor(id: string, floorSec: number): void {
    if (floorSec <= this.floorOf(id)) return
    this.floors.set(id, floorSec)
    if (this.floors.size <= this.#max) return
    const [[lowest, sec] = [id, floorSec]] = [...this.floors].toSorted(
      ([a, x], [b, y]) => x - y || (a < b ? -1 : 1),
    )
    this.floors.delete(lowest)
    this.floorOfAll = sec
  }
}

/** Times that the id of a stream key has. */
export function timesOf(keyId: string): { issuedMs: number; expiresMs: number } {
  const [issued, lifetime] = keyId.split('-').map(Number)
  return { issuedMs: issued! * 1000, expiresMs: (issued! + lifetime!) * 1000 }
}
