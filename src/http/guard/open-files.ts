/**
 * Limit on connections from the open files of this process.
 *
 * @module
 */
import { readFileSync } from 'node:fs'

/** File descriptors for webhooks (512), for refused connections (128), and for SRT, log and libraries (256). */
const RESERVED_FILES = 512 + 128 + 256

/** @returns maximum number of connections; Infinity if the limit of open files is unknown (not on Linux) */
export function maxOpenConnections(): number {
  const files = maxOpenFiles()
  // At least half of the limit: the reserve must not use up a small limit.
  return Math.max(files - RESERVED_FILES, Math.floor(files / 2))
}

/** Limit of open files. Node raises the soft limit to the hard one when it starts. */
export function maxOpenFiles(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}
