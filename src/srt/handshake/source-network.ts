/**
 * Who is one and the same as far as limits go. Whoever can send from one address can often send from its neighbors: a
 * /56 is what an access provider gives one customer (RFC 6177).
 *
 * @module
 */
import { encodePeerAddress } from '../wire/peer-address.ts'

/** Bytes of a /56. */
const IPV6_NETWORK_BYTES = 7

/** @returns a name for the /24 of an IPv4 address (`::ffff:192.0.2.1` as well), or for the /56 of an IPv6 address */
export function networkOf(address: string): string {
  const lastDot = address.lastIndexOf('.')
  // On the wire each word is reversed.
  return lastDot === -1
    ? encodePeerAddress(address).swap32().toString('hex', 0, IPV6_NETWORK_BYTES)
    : address.slice(0, lastDot)
}
