/**
 * Who is one and the same as far as limits go. Whoever can send from one address can often send from its neighbours.
 *
 * @module
 */
import { encodePeerAddress } from './wire/peer-address.ts'

/** @returns a name for the /24 of an IPv4 address (`::ffff:192.0.2.1` as well), or for the /64 of an IPv6 address */
export function networkOf(address: string): string {
  const lastDot = address.lastIndexOf('.')
  return lastDot === -1
    ? encodePeerAddress(address).toString('hex', 0, 8)
    : address.slice(0, lastDot)
}
