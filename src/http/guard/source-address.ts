/**
 * Source of a connection, for limits per address.
 *
 * @module
 */
import { networkName } from '../../binary/ip-address.ts'

/**
 * Names the source of a connection: the IPv4 address (also for `::ffff:192.0.2.1`), or the /64 of an IPv6 address,
 * since one host can use all addresses of its /64.
 *
 * @param address  `Socket.remoteAddress`; undefined for a Unix socket
 * @returns undefined for the loopback and Unix sockets, where a reverse proxy or worker connects on behalf of all viewers
 */
export function sourceOf(address = ''): string | undefined {
  const isLoopback = address === '::1' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address)
  return isLoopback || address === '' ? undefined : networkName(address, 4, 8)
}
