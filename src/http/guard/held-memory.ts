/**
 * Memory held by responses that wait in sockets, and the connections to disconnect when it exceeds its limit.
 *
 * A body sent to many readers is in memory once, so each is counted once, identified by its memory. Cached bodies cost
 * no extra memory and are not counted.
 *
 * @module
 */

/** Memory held by one connection. */
export interface Holder {
  /** Bytes of this connection alone: unread requests, and responses made for it. */
  readonly ownBytes: number
  /** Memory of its waiting bodies, including partly sent ones. */
  readonly bodies: readonly ArrayBufferLike[]
  /** Reading rate; Infinity while it is unknown, so that the connection is disconnected last. */
  readonly bytesPerSec: number
}

/**
 * @param url  URL of the request that the bodies answer
 * @returns memory of the bodies that is held for this response alone
 */
export type UncachedMemory = (url: string, bodies: readonly Buffer[]) => ArrayBufferLike[]

/** Bytes held by these connections together; memory that several of them hold counts once. */
export function heldBytes(holders: Iterable<Holder>): number {
  const counted = new Set<ArrayBufferLike>()
  let bytes = 0
  for (const { ownBytes, bodies } of holders) {
    bytes += ownBytes
    for (const body of bodies) {
      if (!counted.has(body)) bytes += body.byteLength
      counted.add(body)
    }
  }
  return bytes
}

/**
 * Connections to disconnect, the slowest first, until the others hold at most `maxBytes`. A connection that holds
 * nothing, since its bodies are in the cache, stays.
 */
export function slowestOver<Each extends Holder>(
  holders: readonly Each[],
  maxBytes: number,
): Each[] {
  const readers = new Map<ArrayBufferLike, number>()
  for (const body of holders.flatMap(({ bodies }) => bodies)) {
    readers.set(body, (readers.get(body) ?? 0) + 1)
  }
  let bytes = heldBytes(holders)
  const over: Each[] = []
  for (const holder of holders.toSorted(bySpeed)) {
    if (bytes <= maxBytes) break
    if (holder.ownBytes === 0 && holder.bodies.length === 0) continue
    over.push(holder)
    bytes -= holder.ownBytes
    for (const body of holder.bodies) {
      const left = readers.get(body)! - 1
      readers.set(body, left)
      if (left === 0) bytes -= body.byteLength
    }
  }
  return over
}

function bySpeed(a: Holder, b: Holder): number {
  // Not by subtraction: Infinity - Infinity is NaN.
  return a.bytesPerSec === b.bytesPerSec ? 0 : a.bytesPerSec < b.bytesPerSec ? -1 : 1
}
