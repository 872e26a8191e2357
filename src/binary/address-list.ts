/**
 * Lists of IP addresses and CIDR blocks.
 *
 * @module
 */
import { BlockList, isIP } from 'node:net'

/**
 * @param entries  addresses and CIDR blocks; an IPv4 entry also matches IPv4-mapped addresses (`::ffff:0:0/96`)
 * @throws {TypeError | RangeError} for any other entry
 */
export function addressList(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', prefix, ...rest] = entry.split('/')
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    if (prefix === undefined) list.addAddress(address, family)
    else if (/^\d{1,3}$/.test(prefix) && rest.length === 0) {
      list.addSubnet(address, Number(prefix), family)
    } else throw new RangeError(`${entry} is not a CIDR block`)
  }
  return list
}

/** Whether `text` is an address or a CIDR block. */
export function isAddressBlock(text: string): boolean {
  try {
    addressList([text])
    return true
  } catch {
    return false
  }
}

/** @param address  numeric; the zone of an IPv6 address is ignored */
export function listContains(list: BlockList, address: string): boolean {
  const plain = address.replace(/%.*/, '')
  return list.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6')
}
