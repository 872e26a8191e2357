/**
 * Limit on connections from the open files of this process.
 *
 * @module
 */
import { readFileSync } from 'node:fs'

/** Descriptors for webhooks (512), refused connections (128), and SRT, log and libraries. */
const RESERVED_FILES = 512 + 128 + 256

/** @returns maximum number of connections; Infinity if the limit of open files is unknown (not on Linux) */
export function maxOpenConnections(): number {
  const files = maxOpenFiles()
  // At least half of the limit: the reserve must not take all of a small one.
  return Math.max(files - RESERVED_FILES, Math.floor(files / 2))
}

/** Limit of open files. Node raises the soft limit to the hard one when it starts. */
function maxOpenFiles(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}
