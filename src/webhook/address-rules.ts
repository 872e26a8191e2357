/**
 * Allowed receivers of webhooks: the entries of WEBHOOK_ALLOW if it is set, but never link-local, metadata,
 * unspecified, multicast or broadcast addresses.
 *
 * @module
 */
import { BlockList, isIP } from 'node:net'
import { addressList, listContains } from '../binary/address-list.ts'

/** Parsed WEBHOOK_ALLOW. Without entries it allows every address that is not forbidden. */
export interface AllowList {
  readonly addresses: BlockList
  /** Lower-case host names; an entry with a leading dot matches every name that ends with it. */
  readonly names: readonly string[]
  readonly isEmpty: boolean
}

/**
 * Addresses that are never a receiver. Metadata services of clouds hand out credentials of the machine; most of them
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
  // Metadata of AWS (EC2 and EKS), Google Cloud and Scaleway.
  'fd00:ec2::/32',
  'fd20:ce::254',
  'fd00:42::42',
  // Unspecified and multicast.
  '::',
  'ff00::/8',
]

/** Forbidden addresses. `BlockList` matches IPv4-mapped IPv6 addresses (`::ffff:0:0/96`) with the IPv4 entries. */
const FORBIDDEN = addressList([
  ...FORBIDDEN_IPV4,
  ...FORBIDDEN_IPV4.flatMap(translatedForms),
  ...FORBIDDEN_IPV6,
])

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

/** Whether a webhook to `host` may connect to this address. */
export function mayConnect(allowed: AllowList, host: string, address: string): boolean {
  if (listContains(FORBIDDEN, address)) return false
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

/** IPv6 blocks that are translated to an IPv4 block: NAT64 (RFC 6052 2.1) and 6to4 (RFC 3056 2). */
function translatedForms(block: string): string[] {
  const [address = '', prefix] = block.split('/')
  const [a, b, c, d] = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'))
  const bits = Number(prefix)
  return [`64:ff9b::${a}${b}:${c}${d}/${96 + bits}`, `2002:${a}${b}:${c}${d}::/${16 + bits}`]
}

/** Whether the URL parser reads the text, without a leading dot, as a host name. It reads `10.1` as an IPv4 address. */
function isName(text: string): boolean {
  const name = text.replace(/^\./, '')
  return /^[a-z0-9_.-]+$/.test(name) && URL.canParse(`http://${name}`)
    ? new URL(`http://${name}`).hostname === name && isIP(name) === 0
    : false
}
