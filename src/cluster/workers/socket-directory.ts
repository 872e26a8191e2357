/**
 * Directory of the Unix sockets between the ingest processes and the workers, which no other user can open.
 *
 * @module
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../errors.ts'

/** Maximum length of the path of a Unix socket: 107 on Linux, 103 on macOS. */
const MAX_PATH_BYTES = 103

/** Name of the longest path. */
const LONGEST = nameOfIngest(64)

/** Name of an ingest process, from 1 on: that of its socket, and the host of its URL for the others. */
export function nameOfIngest(number: number): string {
  return `ingest-${number}`
}

/** @returns path of the socket of another process, by its name */
export function socketBeside(socketPath: string, name: string): string {
  return join(dirname(socketPath), name)
}

/**
 * @returns path of the socket of the first ingest process in a new directory with mode 0700
 * @throws {MillraceError} `CONFIG_INVALID` if there cannot be one
 */
export function createSocketPath(): string {
  const prefix = join(tmpdir(), 'millrace-')
  if (Buffer.byteLength(join(`${prefix}XXXXXX`, LONGEST)) > MAX_PATH_BYTES) throw unusable()
  try {
    return join(mkdtempSync(prefix), nameOfIngest(1))
  } catch (cause) {
    throw unusable(cause)
  }
}

function unusable(cause?: unknown): MillraceError {
  const message = `HTTP_WORKERS or INGEST_WORKERS is set, TMPDIR is ${tmpdir()}: expected a directory with a short path that this process can write`
  return new MillraceError('CONFIG_INVALID', { message, cause })
}

/** Removes the socket of a process that was killed, so that the next one can listen. */
export function removeSocket(socketPath: string): void {
  rmSync(socketPath, { force: true })
}

/** Removes the directory with its socket. */
export function removeSocketDirectory(socketPath: string): void {
  rmSync(dirname(socketPath), { recursive: true, force: true })
}
