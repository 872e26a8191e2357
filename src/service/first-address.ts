/**
 * The address by which others reach this machine.
 *
 * @module
 */
import { networkInterfaces } from 'node:os'

/** The first address by which others reach this machine; of IPv6 where it has no IPv4. */
export function firstAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const reachable = addresses.filter(
    ({ internal, address }) => !internal && !address.startsWith('fe80:'),
  )
  const first = reachable.find(({ family }) => family === 'IPv4') ?? reachable[0]
  return first?.address ?? '127.0.0.1'
}
