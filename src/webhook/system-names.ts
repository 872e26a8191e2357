/**
 * Host names in system files: /etc/hosts (hosts(5)) and the search list of /etc/resolv.conf (resolv.conf(5)).
 *
 * @module
 */
import { isIP } from 'node:net'

/** Maximum number of search suffixes; glibc before 2.26 has the same. */
const MAX_SUFFIXES = 6

/** Addresses of a host name, in the order of the hosts file. */
export function parseHosts(text: string, name: string): string[] {
  return (
    text
      .split('\n')
      .filter((line) => line.toLowerCase().includes(name))
      .map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
      .filter(([address = '', ...names]) => isIP(address) !== 0 && names.includes(name))
      .map(([address = '']) => address)
      // Only link-local addresses have a zone; no webhook may go to them.
      .filter((address) => !address.includes('%'))
  )
}

/**
 * Names to query, in this order, until one exists. A name with fewer than `ndots` dots is tried with the suffixes of
 * the search list first. The default `ndots` is 1; containers often have 5.
 */
export function searchNames(resolvConf: string, name: string): string[] {
  const lines = resolvConf.split('\n').map((line) => line.trim().split(/\s+/))
  // The last line wins (resolv.conf(5)).
  const [, ...suffixes] = lines.findLast(([key]) => key === 'search' || key === 'domain') ?? []
  const options = lines.filter(([key]) => key === 'options').flat()
  const ndots = Number(options.findLast((option) => /^ndots:\d+$/.test(option))?.slice(6) ?? 1)
  const found = suffixes
    .slice(0, MAX_SUFFIXES)
    .map((suffix) => `${name}.${suffix.replace(/^\.|\.$/g, '')}`)
    .filter((each) => !each.endsWith('.'))
  return name.split('.').length > ndots ? [name, ...found] : [...found, name]
}
