/**
 * Errors of opening a port, with the setting to change.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'

/** Error codes for an address that is incomplete or unknown, or does not belong to this machine. */
const NOT_OURS = new Set<unknown>(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL', 'ENOTFOUND'])

/**
 * @param setting  name of the port setting, without `_PORT` or `_PORTS`
 * @param hostSetting  name of the host setting
 * @returns handler that rethrows a bind error with advice, and any other error unchanged
 */
export function explainAddress(
  setting: 'API' | 'HTTP' | 'METRICS' | 'SRT' | 'SRTLA' | 'SRT_STREAM',
  host: string,
  hostSetting = `${setting}_HOST`,
) {
  return (error: unknown): never => {
    const cause = ((error as Error).cause ?? error) as BindError
    const { code, port, address = host } = cause
    const portSetting = setting === 'SRT_STREAM' ? 'SRT_STREAM_PORTS' : `${setting}_PORT`
    if (code === 'EADDRINUSE') {
      const message = `port ${port} on ${address} is in use: choose another ${portSetting}`
      throw new MillraceError('ADDRESS_IN_USE', { message, cause })
    }
    if (code === 'EACCES') {
      const message = `${portSetting} is ${port}: expected 1024 or more, unless the process has CAP_NET_BIND_SERVICE`
      throw new MillraceError('CONFIG_INVALID', { message, cause })
    }
    if (!NOT_OURS.has(code)) throw error
    const message =
      `${hostSetting}: ${address} cannot be bound; expected addresses of this machine, ` +
      'a link-local one with its interface (fe80::1%eth0)'
    throw new MillraceError('CONFIG_INVALID', { message, cause })
  }
}

interface BindError extends NodeJS.ErrnoException {
  readonly address?: string
  readonly port?: number
}
