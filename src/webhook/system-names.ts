/**
 * What the files of a machine say of host names: /etc/hosts (hosts(5)) and the search list of /etc/resolv.conf
 * (resolv.conf(5)).
 *
 * @module
 */
import { isIP } from 'node:net'

/** Longest search list that is followed, as in libraries of old. */
const MAX_SUFFIXES = 6

/** Addresses that a hosts file gives a name, in its order. */
export function parseHosts(text: string, name: string): string[] {
  return (
    text
      .split('\n')
      .filter((line) => line.toLowerCase().includes(name))
      .map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
      .filter(([address = '', ...names]) => isIP(address) !== 0 && names.includes(name))
      .map(([address = '']) => address)
      // A zone belongs to one interface and to link-local addresses alone.
      .filter((address) => !address.includes('%'))
  )
}

/**
 * Names to ask a name server for, one after the other until one is known: those of the search list first where the
 * name has fewer dots than `ndots` says, as names in containers have.
 */
export function searchNames(resolvConf: string, name: string): string[] {
  const lines = resolvConf.split('\n').map((line) => line.trim().split(/\s+/))
  // The last line of its kind counts.
  const [, ...suffixes] = lines.findLast(([key]) => key === 'search' || key === 'domain') ?? []
  const options = lines.filter(([key]) => key === 'options').flat()
  const ndots = Number(options.findLast((option) => /^ndots:\d+$/.test(option))?.slice(6) ?? 1)
  const found = suffixes
    .slice(0, MAX_SUFFIXES)
    .map((suffix) => `${name}.${suffix.replace(/^\.|\.$/g, '')}`)
    .filter((each) => !each.endsWith('.'))
  return name.split('.').length > ndots ? [name, ...found] : [...found, name]
}
