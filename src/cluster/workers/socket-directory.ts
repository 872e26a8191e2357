/**
 * Directory of the Unix socket between the ingest process and the workers, which no other user can open.
 *
 * @module
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../errors.ts'

/** Maximum length of the path of a Unix socket: 107 on Linux, 103 on macOS. */
const MAX_PATH_BYTES = 103

/**
 * @returns path of a socket in a new directory with mode 0700
 * @throws {MillraceError} `CONFIG_INVALID` if there cannot be one
 */
export function createSocketPath(): string {
  const prefix = join(tmpdir(), 'millrace-')
  if (Buffer.byteLength(join(`${prefix}XXXXXX`, 'http')) > MAX_PATH_BYTES) throw unusable()
  try {
    return join(mkdtempSync(prefix), 'http')
  } catch (cause) {
    throw unusable(cause)
  }
}

function unusable(cause?: unknown): MillraceError {
  const message = `HTTP_WORKERS is set, TMPDIR is ${tmpdir()}: expected a directory with a short path that this process can write`
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
