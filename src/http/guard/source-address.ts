/**
 * Whose connections count as one address's.
 *
 * @module
 */

/**
 * @param address  as `Socket.remoteAddress` writes it
 * @returns a name for the IPv4 address (`::ffff:192.0.2.1` as well) or the /64 of an IPv6 address, of which whoever has
 * one address has all; undefined for the loopback: behind it stands a reverse proxy with all its viewers
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
