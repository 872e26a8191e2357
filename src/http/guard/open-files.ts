/**
 * How many connections the file descriptors of this process allow.
 *
 * @module
 */
import { readFileSync } from 'node:fs'

/** Descriptors for everything else: webhooks up to 512, connections that are refused 128, and SRT, log and libraries. */
const RESERVED_FILES = 512 + 128 + 256

/** @returns connections that there can be; infinite where the system does not say (it does on Linux) */
export function maxOpenConnections(): number {
  const files = maxOpenFiles()
  // Half of very few: what is kept free must not be all of it.
  return Math.max(files - RESERVED_FILES, Math.floor(files / 2))
}

/** Node has raised the soft limit to the hard one when it started. */
function maxOpenFiles(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}
