/**
 * Datagrams that the kernel dropped at UDP sockets, mostly because the process read too late. Linux has one table for
 * IPv4 and one, with longer addresses, for IPv6 (proc(5)). Each has one line per socket:
 *
 *      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 *   15189: 0100007F:2760 00000000:0000 07 00000000:00001200 00:00000000 00000000     0        0 677127 2 e568617d 18
 *
 * @module
 */
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { encodePeerAddress } from '../wire/peer-address.ts'

const TABLES = ['/proc/net/udp', '/proc/net/udp6']

/** @returns number of datagrams dropped since the sockets were opened; undefined if the system has no such counter */
export async function readKernelDrops(
  sockets: readonly AddressInfo[],
): Promise<number | undefined> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, 'utf8').catch(() => '')))
  const drops = new Map(tables.flatMap((table) => [...parseKernelDrops(table)]))
  return sockets
    .map((socket) => drops.get(formatLocalAddress(socket)))
    .reduce((sum, count) => (sum === undefined || count === undefined ? undefined : sum + count), 0)
}

/** @returns drops by `local_address` in the table's format */
export function parseKernelDrops(table: string): Map<string, number> {
  const lines = table.split('\n').map((line) => line.trim().split(/\s+/))
  const sockets = lines.filter(([number]) => number?.endsWith(':'))
  return new Map(sockets.map((fields) => [fields[1]!, Number(fields.at(-1))]))
}

/** Formats an address as in the table: 32-bit words in host byte order, which is little-endian on x86 and ARM. */
export function formatLocalAddress({ address, port, family }: AddressInfo): string {
  const words = encodePeerAddress(address).toString('hex', 0, family === 'IPv6' ? 16 : 4)
  return `${words}:${port.toString(16).padStart(4, '0')}`.toUpperCase()
}
