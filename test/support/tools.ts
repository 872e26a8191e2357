/**
 * Tests against real peers need programs that not every machine has. Absent, the test is skipped with a message;
 * where `CI=true` it fails, so that a skipped test never counts as a passed one.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { accessSync, constants, existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { delimiter, join } from 'node:path'
import type { Test } from 'tap'

type Verdicts = Pick<Test, 'pass' | 'fail'>

/** Whether all programs are on the PATH; skips or fails `t` where one is not. Leave the test when it answers false. */
export function requireTool(t: Verdicts, ...names: string[]): boolean {
  return requireNothingOf(
    t,
    names.filter((name) => !isOnPath(name)),
  )
}

/** The same for files, such as the headers of a library. */
export function requireFile(t: Verdicts, ...paths: string[]): boolean {
  return requireNothingOf(
    t,
    paths.filter((path) => !existsSync(path)),
  )
}

/** The same for addresses of this machine, such as `::1` where IPv6 may be switched off. */
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
