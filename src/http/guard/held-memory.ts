/**
 * What memory waits in sockets, and who has to go when it is too much.
 *
 * A body that many read is in memory once, and one that the cache or the program holds anyway costs nothing: so bodies are
 * told apart by their memory, and counted once, where nobody else holds it.
 *
 * @module
 */

/** What one connection keeps in memory. */
export interface Holder {
  /** Bytes that are this connection's alone: requests not read yet, replies made for it. */
  readonly ownBytes: number
  /** Memory of the bodies that wait for it, also where a part of them is sent. */
  readonly bodies: readonly ArrayBufferLike[]
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

/** The slowest, until what the others hold is no more than `maxBytes`. */
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
  for (const holder of holders.toSorted((a, b) => a.bytesPerSec - b.bytesPerSec)) {
    if (bytes <= maxBytes) break
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
