/**
 * Datagrams that the kernel dropped at UDP sockets, mostly because the process read too late. Linux has one table for
 * IPv4 and one, with longer addresses, for IPv6 (proc(5)). Each has one line per socket:
 *
 *      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 *   15189: 0100007F:2760 00000000:0000 07 00000000:00001200 00:00000000 00000000     0        0 677127 2 e568617d 18
 *
 * @module
 */
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { encodePeerAddress } from '../wire/handshake.ts'

const TABLES = ['/proc/net/udp', '/proc/net/udp6']

/** A line of the table. */
interface SocketDrops {
  /** See `formatLocalAddress`. */
  readonly address: string
  readonly inode: string
  readonly drops: number
}

async function readTables(): Promise<SocketDrops[]> {
  const tables = TABLES.map((path) => readFile(path, 'utf8').catch(() => ''))
  return (await Promise.all(tables)).flatMap(parseKernelDrops)
}

export function parseKernelDrops(table: string): SocketDrops[] {
  return table.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/)
    const [number, address = ''] = fields
    const [inode = '', , , drops] = fields.slice(-4)
    return number?.endsWith(':') ? { address, inode, drops: Number(drops) } : []
  })
}

async function readOwnInodes(): Promise<ReadonlySet<string>> {
  const fds = await readdir('/proc/self/fd').catch(() => [])
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return new Set(links.map((link) => link.replace(/^socket:\[(\d+)\]$/, '$1')))
}

/** Formats an address as in the table: 32-bit words in host byte order, which is little-endian on x86 and ARM. */
export function formatLocalAddress({ address, port, family }: AddressInfo): string {
  const words = encodePeerAddress(address).toString('hex', 0, family === 'IPv6' ? 16 : 4)
  return `${words}:${port.toString(16).padStart(4, '0')}`.toUpperCase()
}

/** Max interval between readings of a `KernelDropMonitor` while the listener is busy. The service calls `read` once per second. */
const MAX_UNREAD_US = 15_000_000
const WARNING_INTERVAL_US = 60_000_000

interface KernelDropMonitorOptions {
  /** Reads the local addresses of the sockets to watch. */
  readonly readSockets: () => readonly AddressInfo[]
  /** Command that allows a larger receive buffer; undefined if the kernel does not limit it. */
  readonly advice: string | undefined
  readonly onWarning: (message: string) => void
}

/** Warns about drops, at most once a minute. */
export class KernelDropMonitor {
  readonly #options: KernelDropMonitorOptions
  /** Drops of each socket at the latest reading, by inode. */
  #latest: ReadonlyMap<string, number> = new Map()
  /** Those of sockets that are closed, too; undefined until the system has told. */
  #total: number | undefined
  #reportedDrops = 0
  #nextReadUs = 0
  #nextWarningUs = 0

  constructor(options: KernelDropMonitorOptions) {
    this.#options = options
  }

  /**
   * Reads the counters, and warns of new drops.
   *
   * @returns datagrams dropped since the sockets were opened; undefined if the system has no such counter
   */
  async read(nowUs: number): Promise<number | undefined> {
    this.#nextReadUs = nowUs + MAX_UNREAD_US
    const drops = await this.#count()
    this.#warnOf(drops ?? 0, nowUs)
    return drops
  }

  /** Reads the counters, unless they were read within `MAX_UNREAD_US`. */
  tick(nowUs: number): void {
    if (nowUs >= this.#nextReadUs) void this.read(nowUs)
  }

  async #count(): Promise<number | undefined> {
    const addresses = new Set(this.#options.readSockets().map(formatLocalAddress))
    const there = (await readTables()).filter(({ address }) => addresses.has(address))
    // Other processes may share a port, and each of its connections has a socket then.
    const isShared = there.length > addresses.size
    const inodes: ReadonlySet<string> = isShared ? await readOwnInodes() : new Set()
    const own = isShared ? there.filter(({ inode }) => inodes.has(inode)) : there
    if (new Set(own.map(({ address }) => address)).size < addresses.size) return this.#total
    const latest = new Map(own.map(({ inode, drops }) => [inode, drops]))
    // A table that changes while it is read may lack a socket.
    const missed = [...this.#latest].filter(([inode]) => inodes.has(inode) && !latest.has(inode))
    const added = [...latest].map(([inode, drops]) => drops - (this.#latest.get(inode) ?? 0))
    this.#total = added.reduce((sum, each) => sum + Math.max(0, each), this.#total ?? 0)
    this.#latest = new Map([...missed, ...latest])
    return this.#total
  }

  #warnOf(drops: number, nowUs: number): void {
    if (drops <= this.#reportedDrops || nowUs < this.#nextWarningUs) return
    this.#nextWarningUs = nowUs + WARNING_INTERVAL_US
    const { advice, onWarning } = this.#options
    onWarning(
      `The kernel dropped ${drops - this.#reportedDrops} datagrams for SRT, read too late. Viewers may see holes. ` +
        `Run fewer streams${advice === undefined ? '.' : `, or: ${advice}`}`,
    )
    this.#reportedDrops = drops
  }
}
