/**
 * Checks for programs that a test needs. If one is missing, the test is skipped with a message, or fails with `CI=true`,
 * so that CI skips no test.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { accessSync, constants, existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { delimiter, join } from 'node:path'
import type { Test } from 'tap'

type Verdicts = Pick<Test, 'pass' | 'fail'>

/** Whether all programs are on the PATH; skips or fails `t` otherwise. Return from the test when it is false. */
export function requireTool(t: Verdicts, ...names: string[]): boolean {
  return requireNothingOf(
    t,
    names.filter((name) => !isOnPath(name)),
  )
}

/** Whether all files exist, such as the headers of a library; skips or fails `t` otherwise. */
export function requireFile(t: Verdicts, ...paths: string[]): boolean {
  return requireNothingOf(
    t,
    paths.filter((path) => !existsSync(path)),
  )
}

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

function requireNothingOf(t: Verdicts, missing: readonly string[]): boolean {
  if (missing.length === 0) return true
  const message = `needs ${missing.join(', ')}, which is not installed`
  if (process.env['CI'] === 'true') t.fail(message)
  else t.pass('skipped', { skip: message })
  return false
}

function isOnPath(name: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
