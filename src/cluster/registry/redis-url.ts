/**
 * `REDIS_URL`: `redis://` with one server, or `redis+sentinel://` with the Sentinels that know it; `rediss` for TLS, with
 * Sentinels, too.
 *
 * @module
 */
import { isIPv6 } from 'node:net'
import { MillraceError } from '../../errors.ts'

export interface HostPort {
  readonly host: string
  readonly port: number
}

interface Credentials {
  readonly username?: string
  readonly password?: string
}

export interface RedisTarget extends Credentials {
  readonly tls: boolean
  readonly database: number
  /** The server, or the Sentinels, which know its address. */
  readonly addresses: readonly HostPort[]
  /** Name under which Sentinels know the server; undefined without Sentinels. */
  readonly masterName?: string
  /** Credentials for the Sentinels themselves. */
  readonly sentinel: Credentials
}

/** The query has the names of go-redis. */
const SHAPE =
  /^(?<scheme>rediss?)(?<sentinels>\+sentinel)?:\/\/(?:(?<username>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?#]+)(?<path>\/[^?#]*)?(?:\?(?:sentinel_username=(?<sentinelUsername>[^&#]*)&)?sentinel_password=(?<sentinelPassword>[^&#]*))?$/

const PORTS = { server: 6379, sentinel: 26_379 }

const ALLOWED =
  'REDIS_URL must be redis://[user:password@]host[:port][/database], or redis+sentinel://[user:password@]host[:port],…/master name[/database][?[sentinel_username=…&]sentinel_password=…]; rediss:// and rediss+sentinel:// with TLS'

/** @throws {MillraceError} `CONFIG_INVALID`, without the URL, which may contain a password */
export function parseRedisUrl(url: string): RedisTarget {
  const {
    scheme,
    username,
    password,
    hosts = '',
    path = '',
    sentinels,
    sentinelUsername,
    sentinelPassword,
  } = SHAPE.exec(url)?.groups ?? refuse()
  const hasSentinels = sentinels !== undefined
  const port = hasSentinels ? PORTS.sentinel : PORTS.server
  const addresses = hosts.split(',').map((host) => parseAddress(host, port))
  const segments = path.split('/').slice(1).map(decode)
  const masterName = hasSentinels ? segments.shift() : undefined
  const [database = '', ...rest] = segments
  const isWhole = rest.length === 0 && /^\d{0,5}$/.test(database)
  const isOne = addresses.length === 1 && sentinelPassword === undefined
  if (!isWhole || (hasSentinels ? !masterName : !isOne)) refuse()
  return {
    tls: scheme === 'rediss',
    ...credentials(username, password),
    database: Number(database),
    addresses,
    ...(masterName !== undefined && { masterName }),
    sentinel: credentials(sentinelUsername, sentinelPassword),
  }
}

function credentials(username = '', password = ''): Credentials {
  return {
    ...(username !== '' && { username: decode(username) }),
    ...(password !== '' && { password: decode(password) }),
  }
}

function parseAddress(text: string, defaultPort: number): HostPort {
  const {
    v6,
    name,
    port = String(defaultPort),
  } = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[A-Za-z0-9._-]+))(?::(?<port>\d{1,5}))?$/.exec(text)?.groups ??
  refuse()
  if ((v6 !== undefined && !isIPv6(v6)) || Number(port) < 1 || Number(port) > 65_535) refuse()
  return { host: (v6 ?? name)!, port: Number(port) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return refuse()
  }
}

function refuse(): never {
  throw new MillraceError('CONFIG_INVALID', { message: ALLOWED })
}
