/**
 * Memory that waits in sockets, and the connections to cut when it is too much.
 *
 * A body that many read is in memory once, and one that the cache or the program holds anyway costs nothing: so bodies are
 * told apart by their memory, and counted once, where nobody else holds it.
 *
 * @module
 */

/** Memory that one connection keeps. */
export interface Holder {
  /** Bytes that are this connection's alone: requests not read yet, replies made for it. */
  readonly ownBytes: number
  /** Memory of the bodies that wait for it, also where a part of them is sent. */
  readonly bodies: readonly ArrayBufferLike[]
  /** Infinity where nothing is known of the reader yet: it is cut last. */
  readonly bytesPerSec: number
}

/** Bytes that are in memory because of these connections. */
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
 * Connections to cut, the slowest first, until what the others hold is no more than `maxBytes`. A connection that holds
 * nothing of its own, as its bodies are in the cache, stays.
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
  // Not by difference: that of two infinities is no number.
  return a.bytesPerSec === b.bytesPerSec ? 0 : a.bytesPerSec < b.bytesPerSec ? -1 : 1
}
