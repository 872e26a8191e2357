/**
 * Addresses of host names, from /etc/hosts (hosts(5)) and DNS, with the search list of /etc/resolv.conf (resolv.conf(5)).
 *
 * Avoids `dns.lookup`, which waits for name servers in Node's thread pool: four dead names would block all other
 * look-ups.
 *
 * @module
 */
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Clock } from '../timing/clock.ts'
import { mayConnect, type AllowList } from './address-rules.ts'

export interface LookUpOptions {
  readonly clock: Clock
  /** Creates a resolver for each look-up, so that a changed /etc/resolv.conf takes effect. */
  readonly createResolver?: (() => Resolver) | undefined
  /** Reads a system file; resolves to '' if it cannot be read. */
  readonly readSystemFile?: ((path: string) => Promise<string>) | undefined
}

/** Lifetime of a cached answer. */
const VALID_FOR_US = 10 * 1_000_000
const MAX_NAMES = 1024

/** Maximum number of search suffixes; glibc before 2.26 has the same. */
const MAX_SUFFIXES = 6

/** Two tries, 2 s in total. */
const RESOLVER_OPTIONS = { timeout: 700, tries: 2 }

/** Error codes for a name that does not exist or has no address. */
const UNKNOWN = new Set<unknown>(['ENOTFOUND', 'ENODATA'])

interface Answer {
  readonly addresses: Promise<string[]>
  readonly sinceUs: number
}

export class LookUp {
  readonly #clock: Clock
  readonly #createResolver: () => Resolver
  readonly #readSystemFile: (path: string) => Promise<string>
  /** Answers by name, oldest first; pending ones too, so that simultaneous look-ups of a name share one. */
  readonly #answers = new Map<string, Answer>()
  readonly #resolvers = new Set<Resolver>()
  #isClosed = false

  constructor({ clock, createResolver, readSystemFile }: LookUpOptions) {
    this.#clock = clock
    this.#createResolver = createResolver ?? (() => new Resolver(RESOLVER_OPTIONS))
    this.#readSystemFile = readSystemFile ?? ((path) => readFile(path, 'utf8').catch(() => ''))
  }

  /**
   * Addresses of a host, in the order of the hosts file or, from DNS, IPv4 first. An address resolves to itself.
   *
   * @throws {Error} with the `code` of `node:dns`
   */
  find(host: string): Promise<string[]> {
    if (isIP(host) !== 0) return Promise.resolve([host])
    const nowUs = this.#clock.nowUs()
    const known = this.#answers.get(host)
    if (known !== undefined && nowUs - known.sinceUs < VALID_FOR_US) return known.addresses
    const answer = { addresses: this.#lookUp(host), sinceUs: nowUs }
    this.#answers.delete(host)
    this.#answers.set(host, answer)
    const [oldest] = this.#answers.keys()
    if (oldest !== undefined && this.#answers.size > MAX_NAMES) this.#answers.delete(oldest)
    answer.addresses.catch(() => {
      if (this.#answers.get(host) === answer) this.#answers.delete(host)
    })
    return answer.addresses
  }

  /** Cancels pending DNS queries; they and later ones reject with ECANCELLED. */
  close(): void {
    this.#isClosed = true
    for (const resolver of this.#resolvers) resolver.cancel()
  }

  async #lookUp(name: string): Promise<string[]> {
    // Queries for these names must not be sent to a name server (RFC 6761 6.3).
    if (/(^|\.)localhost$/.test(name)) return ['127.0.0.1', '::1']
    const hosts = parseHosts(await this.#readSystemFile('/etc/hosts'), name)
    if (hosts.length > 0) return hosts
    const names = searchNames(await this.#readSystemFile('/etc/resolv.conf'), name)
    if (this.#isClosed) throw Object.assign(new Error('closed'), { code: 'ECANCELLED' })
    const resolver = this.#createResolver()
    this.#resolvers.add(resolver)
    try {
      return await firstKnown(resolver, names)
    } finally {
      this.#resolvers.delete(resolver)
    }
  }
}

/**
 * Addresses of a host that may be called. The caller connects to one of them, and does not look the name up again.
 *
 * @throws {Error} with `code` `ADDRESS_FORBIDDEN` if there are others alone, or that of `node:dns`
 */
export async function findAllowed(
  lookUp: LookUp,
  allowed: AllowList,
  host: string,
): Promise<string[]> {
  const found = await lookUp.find(host)
  const addresses = found.filter((address) => mayConnect(allowed, host, address))
  if (addresses.length > 0) return addresses
  throw Object.assign(new Error('no allowed address'), { code: 'ADDRESS_FORBIDDEN' })
}

async function firstKnown(resolver: Resolver, [name = '', ...others]: string[]): Promise<string[]> {
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const addresses = answers.flatMap((it) => (it.status === 'fulfilled' ? it.value : []))
  if (addresses.length > 0) return addresses
  const failures = answers.flatMap((it) => (it.status === 'rejected' ? [it.reason as object] : []))
  const failure = failures.find((it) => !('code' in it && UNKNOWN.has(it.code))) ?? failures[0]
  const isUnknown = failure !== undefined && 'code' in failure && UNKNOWN.has(failure.code)
  if (isUnknown && others.length > 0) return firstKnown(resolver, others)
  throw failure
}

/** @returns addresses of a host name, in the order of the hosts file */
export function parseHosts(text: string, name: string): string[] {
  return (
    text
      .split('\n')
      .filter((line) => line.toLowerCase().includes(name))
      .map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
      .filter(([address = '', ...names]) => isIP(address) !== 0 && names.includes(name))
      .map(([address = '']) => address)
      // Only link-local addresses have a zone; nothing may go to them.
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
