/**
 * Network of a source address, for limits per network. A host can often send from many addresses of one network: an
 * access provider assigns each customer a /56 (RFC 6177).
 *
 * @module
 */
import { networkName } from '../../binary/ip-address.ts'

/** @returns name of the /24 of an IPv4 address (also of `::ffff:192.0.2.1`), or of the /56 of an IPv6 address */
export function networkOf(address: string): string {
  return networkName(address, 3, 7)
}
