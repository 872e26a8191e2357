/**
 * Addresses that this service may call for its clients, by webhooks, pull and push: the entries of WEBHOOK_ALLOW or
 * PULL_ALLOW if it is set, but never link-local, metadata, unspecified, multicast or broadcast addresses.
 *
 * @module
 */
import { BlockList, isIP } from 'node:net'
import { addressList, listContains, parseIpAddress } from '../binary/ip-address.ts'

/** Parsed WEBHOOK_ALLOW or PULL_ALLOW. Without entries it allows every address that is not forbidden. */
export interface AllowList {
  readonly addresses: BlockList
  /** Lower-case host names; an entry with a leading dot matches every name that ends with it. */
  readonly names: readonly string[]
  readonly isEmpty: boolean
}

/**
 * Addresses that are never called. Metadata services of clouds hand out credentials of the machine; most of them
 * have link-local addresses.
 */
const FORBIDDEN_IPV4 = [
  // Link-local (RFC 3927).
  '169.254.0.0/16',
  // Metadata of Alibaba Cloud, Azure and Oracle Cloud.
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  // Unspecified, an alias of the loopback on Linux (RFC 1122 3.2.1.3).
  '0.0.0.0/8',
  // Multicast and broadcast.
  '224.0.0.0/4',
  '255.255.255.255/32',
]

const FORBIDDEN_IPV6 = [
  // Link-local (RFC 4291 2.5.6).
  'fe80::/10',
  // Metadata of AWS (EC2 and EKS), Google Cloud, Oracle Cloud, Alibaba Cloud, Akamai and Scaleway.
  'fd00:ec2::/32',
  'fd20:ce::254',
  'fd00:c1::a9fe:a9fe',
  'fd00:100::100:200',
  'fd00:a9fe:a9fe::1',
  'fd00:42::42',
  // Teredo (RFC 4380), out of use: two IPv4 addresses, one of them inverted.
  '2001::/32',
  // Unspecified and multicast.
  '::',
  'ff00::/8',
]

/** Forbidden addresses. `BlockList` matches IPv4-mapped IPv6 addresses (`::ffff:0:0/96`) with the IPv4 entries. */
const FORBIDDEN = addressList([...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6])

/**
 * IPv4 addresses in IPv6 addresses, as hexadecimal digits. `(?!00)`: zeros are not 0.0.0.0/8 there, but `::1`, or filler
 * of a longer prefix.
 */
const CARRIED_IPV4 = [
  // IPv4-compatible (RFC 4291 2.5.5.1) and IPv4-translated (RFC 2765 2.1).
  /^0{24}(?!00)(.{8})$/,
  /^0{16}ffff0000(.{8})$/,
  // NAT64, well-known prefix (RFC 6052 2.1).
  /^0064ff9b0{16}(.{8})$/,
  // NAT64, local prefixes of 48, 56, 64 and 96 bits (RFC 8215, RFC 6052 2.2).
  /^0064ff9b0001(?!00)(.{4})..(.{4})/,
  /^0064ff9b0001..(?!00)(..)..(.{6})/,
  /^0064ff9b0001.{6}(?!00)(.{8})/,
  /^0064ff9b0001.{12}(?!00)(.{8})$/,
  // 6to4 (RFC 3056 2).
  /^2002(.{8})/,
  // ISATAP (RFC 5214 6.1).
  /^.{16}0[02]005efe(.{8})$/,
]

/**
 * Parses host names, `.suffixes`, addresses and CIDR blocks, separated by commas.
 *
 * @returns undefined if an entry has another form
 */
export function parseAllowList(text: string): AllowList | undefined {
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase())
  const names = entries.filter(isName)
  const blocks = entries.filter((entry) => !isName(entry))
  if (text.trim() === '') return { addresses: new BlockList(), names: [], isEmpty: true }
  try {
    return { addresses: addressList(blocks), names, isEmpty: false }
  } catch {
    return undefined
  }
}

/** Whether a call of `host` may go to this address. */
export function mayConnect(allowed: AllowList, host: string, address: string): boolean {
  const targets = [address, ...carriedIpv4(address)]
  if (targets.some((target) => listContains(FORBIDDEN, target))) return false
  return allowed.isEmpty || matchesName(allowed, host) || listContains(allowed.addresses, address)
}

/** Whether `host`, a name or an address, is forbidden no matter what a look-up of it returns. */
export function isForbidden(allowed: AllowList, host: string): boolean {
  if (isIP(host) !== 0) return !mayConnect(allowed, host, host)
  const hasAddresses = allowed.addresses.rules.length > 0
  return !allowed.isEmpty && !hasAddresses && !matchesName(allowed, host)
}

/** The same for a URL, and whether it is not one that webhooks may have. */
export function isForbiddenUrl(allowed: AllowList, url: string): boolean {
  if (!URL.canParse(url)) return true
  const parsed = new URL(url)
  return !/^https?:$/.test(parsed.protocol) || isForbidden(allowed, hostOf(parsed))
}

/** Host of a URL, without the brackets of IPv6 and the final dot of an absolute name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

function matchesName({ names }: AllowList, host: string): boolean {
  return names.some((name) => (name.startsWith('.') ? host.endsWith(name) : host === name))
}

/** @param address  numeric @returns IPv4 addresses to which a router or a tunnel may take packets for it */
function carriedIpv4(address: string): string[] {
  const digits = parseIpAddress(address).toString('hex')
  return CARRIED_IPV4.flatMap((form) => {
    const [, ...parts] = form.exec(digits) ?? []
    return parts.length === 0 ? [] : [...Buffer.from(parts.join(''), 'hex')].join('.')
  })
}

/** Whether the URL parser reads the text, without a leading dot, as a host name. It reads `10.1` as an IPv4 address. */
function isName(text: string): boolean {
  const name = text.replace(/^\./, '')
  return /^[a-z0-9_.-]+$/.test(name) && URL.canParse(`http://${name}`)
    ? new URL(`http://${name}`).hostname === name && isIP(name) === 0
    : false
}
