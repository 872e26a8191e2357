/**
 * Network of a source address, as far as limits go. A host that can send from one address can often send from its
 * neighbors: an access provider gives one customer a /56 (RFC 6177).
 *
 * @module
 */
import { encodePeerAddress } from '../wire/peer-address.ts'

/** Length of a /56 prefix. */
const IPV6_NETWORK_BYTES = 7

/** @returns name of the /24 of an IPv4 address (also of `::ffff:192.0.2.1`), or of the /56 of an IPv6 address */
export function networkOf(address: string): string {
  const lastDot = address.lastIndexOf('.')
  // The wire format reverses each word; `swap32` restores network order.
  return lastDot === -1
    ? encodePeerAddress(address).swap32().toString('hex', 0, IPV6_NETWORK_BYTES)
    : address.slice(0, lastDot)
}
