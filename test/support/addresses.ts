/**
 * Checks for addresses that a test needs. Without them the test is skipped with a message, or fails with `CI=true`.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Test } from 'tap'

export type Verdicts = Pick<Test, 'pass' | 'fail'>

/** Whether this machine has an address, such as `::1` for IPv6; skips or fails `t` otherwise. */
export async function requireAddresses(t: Verdicts, ...addresses: string[]): Promise<boolean> {
  const isOurs = await Promise.all(addresses.map(canBind))
  return requireNothingOf(
    t,
    addresses.filter((_, index) => isOurs[index] !== true),
  )
}

function canBind(address: string): Promise<boolean> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
  return new Promise<boolean>((resolve) => {
    socket.on('error', () => resolve(false))
    socket.bind(0, address, () => resolve(true))
  }).finally(() => socket.close())
}

/** Skips or fails `t` unless nothing is missing. @returns whether nothing is */
export function requireNothingOf(t: Verdicts, missing: readonly string[]): boolean {
  if (missing.length === 0) return true
  const message = `needs ${missing.join(', ')}, which is not installed`
  if (process.env['CI'] === 'true') t.fail(message)
  else t.pass('skipped', { skip: message })
  return false
}
