/**
 * Errors of opening a port, with the setting to change.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'

/** Error codes for an address that is incomplete or does not belong to this machine. */
const NOT_OURS = new Set<unknown>(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL', 'ENOTFOUND'])

/** @returns handler that rethrows a bind error with advice, and any other error as it is */
export function explainAddress(setting: 'HTTP' | 'SRT', host: string) {
  return (error: unknown): never => {
    const cause = ((error as Error).cause ?? error) as BindError
    const { code, port, address = host } = cause
    if (code === 'EADDRINUSE') {
      const message = `port ${port} on ${address} is in use: choose another ${setting}_PORT`
      throw new MillraceError('ADDRESS_IN_USE', { message, cause })
    }
    if (!NOT_OURS.has(code)) throw error
    const message =
      `${setting}_HOST is "${host}": expected addresses of this machine (a link-local one with its interface, ` +
      `fe80::1%eth0), and ${address} cannot be bound`
    throw new MillraceError('CONFIG_INVALID', { message, cause })
  }
}

interface BindError extends NodeJS.ErrnoException {
  readonly address?: string
  readonly port?: number
}
