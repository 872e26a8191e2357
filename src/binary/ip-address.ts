/**
 * Numeric IP addresses: as bytes, the networks that they belong to, and lists of them.
 *
 * @module
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** @returns 4 bytes for IPv4, 16 for IPv6 (a zone is ignored); empty for any other text */
export function parseIpAddress(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  return isIPv6(address) ? parseIpv6(address) : Buffer.alloc(0)
}

/**
 * Address in a text that may also have a port, brackets and a zone: `192.0.2.1:443`, `[2001:db8::1]:443`, `fe80::1%en0`.
 *
 * @returns undefined for text without an address
 */
export function bareAddress(text: string): string | undefined {
  const [, bracketed, dotted] = /^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/.exec(text) ?? []
  const address = (bracketed ?? dotted ?? text).replace(/%.*/, '')
  return isIP(address) === 0 ? undefined : address
}

/**
 * Name of an address's network: its prefix, dotted for IPv4, in hexadecimal for IPv6. An IPv4-mapped address
 * (`::ffff:192.0.2.1`) counts as IPv4.
 *
 * @param ipv4Bytes  length of an IPv4 prefix, in bytes
 * @param ipv6Bytes  length of an IPv6 prefix, in bytes
 */
export function networkName(address: string, ipv4Bytes: number, ipv6Bytes: number): string {
  const isDotted = address.includes('.')
  if (!isDotted) return parseIpAddress(address).toString('hex', 0, ipv6Bytes)
  return address
    .slice(address.lastIndexOf(':') + 1)
    .split('.', ipv4Bytes)
    .join('.')
}

function parseIpv6(address: string): Buffer {
  const text = address.replace(/%.*/, '').replace(/[\d.]+\.\d+$/, ipv4AsGroups)
  const [head = '', tail = ''] = text.split('::')
  const front = parseGroups(head)
  const back = parseGroups(tail)
  const bytes = Buffer.alloc(16)
  front.forEach((group, i) => bytes.writeUInt16BE(group, i * 2))
  back.forEach((group, i) => bytes.writeUInt16BE(group, 16 - (back.length - i) * 2))
  return bytes
}

function parseGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => parseInt(group, 16))
}

/** Rewrites the dotted part of `::ffff:127.0.0.1` as two hexadecimal groups. */
function ipv4AsGroups(dotted: string): string {
  const word = Buffer.from(dotted.split('.').map(Number)).toString('hex')
  return `${word.slice(0, 4)}:${word.slice(4)}`
}

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
