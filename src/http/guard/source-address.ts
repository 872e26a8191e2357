/**
 * Source of a connection, for limits per address.
 *
 * @module
 */

/**
 * Names the source of a connection: the IPv4 address (also of `::ffff:192.0.2.1`), or the /64 of an IPv6 address, since one
 * host has all addresses of its /64.
 *
 * @param address  `Socket.remoteAddress`
 * @returns undefined for the loopback, where a reverse proxy connects on behalf of all viewers
 */
export function sourceOf(address: string): string | undefined {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '')
  if (plain === '::1' || /^127\.\d+\.\d+\.\d+$/.test(plain)) return undefined
  return plain.includes(':') ? firstHalf(plain) : plain
}

/** The first four of the eight groups of an IPv6 address; `::` stands for as many zeros as are missing. */
function firstHalf(address: string): string {
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean))
  const zeros = Array<string>(Math.max(8 - head.length - tail.length, 0)).fill('0')
  return [...head, ...zeros, ...tail].slice(0, 4).join(':')
}
