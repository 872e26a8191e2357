/**
 * Public URLs of this service, for encoders and players.
 *
 * @module
 */
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Config } from '../config/schema.ts'
import { isWildcard, parseAddresses } from '../config/setting-types.ts'
import type { Format } from '../hls/file-names.ts'
import type { PlaybackUrls } from '../api/records.ts'

/** Ports that the service listens on. */
interface Ports {
  readonly httpPort: number
  readonly srtPort: number
}

type UrlConfig = Pick<Config, 'public' | 'nodeUrl' | 'http' | 'srt' | 'tls'>

export class PublicUrls {
  readonly #config: UrlConfig
  readonly #ports: Ports

  /** @param ports  read for every URL, since a port set to 0 is known only once it is bound */
  constructor(config: UrlConfig, ports: Ports) {
    this.#config = config
    this.#ports = ports
  }

  /** Base of HTTP URLs, without a slash at the end. */
  get http(): string {
    const { url } = this.#config.public
    return url === '' ? this.#own : url.replace(/\/+$/, '')
  }

  /** Base of HTTP URLs for other nodes, which reach this one itself. */
  get node(): string {
    return this.#config.nodeUrl || this.#own
  }

  /** URL of the SRT listener, without a stream key. */
  get srt(): string {
    return `srt://${this.#srtHost}:${this.#ports.srtPort}`
  }

  /** @param formats  those of the stream */
  playback(streamId: string, formats: readonly Format[]): PlaybackUrls {
    const masterUrl = `${this.http}/video/${streamId}/master.m3u8`
    const playlistUrl = `${this.http}/video/${streamId}/playlist.m3u8`
    return { playlistUrl: formats.includes('ts') ? playlistUrl : masterUrl, masterUrl }
  }

  /** @returns URL of the page that plays the stream in a browser */
  watch(streamId: string): string {
    return `${this.http}/watch/${streamId}`
  }

  /** @returns SRT URL for an encoder or a reader, with its credentials */
  srtWith(streamId: string, passphrase: string | undefined): string {
    const encryption = passphrase === undefined ? '' : `&${encrypted(passphrase)}`
    return `${this.srt}?streamid=${streamId}${encryption}`
  }

  /** @returns SRT URL of a port that the stream has to itself */
  publishAt(port: number, passphrase: string | undefined): string {
    const encryption = passphrase === undefined ? '' : `?${encrypted(passphrase)}`
    return `srt://${this.#srtHost}:${port}${encryption}`
  }

  get #own(): string {
    const { http, tls } = this.#config
    const host = isWildcard(http.host) ? this.#srtHost : this.#hostAt(http.host)
    return `${tls.cert === '' ? 'http' : 'https'}://${host}:${this.#ports.httpPort}`
  }

  get #srtHost(): string {
    const [first = ''] = parseAddresses(this.#config.srt.host)
    return this.#hostAt(first)
  }

  /**
   * @param address  that a server listens on
   * @returns host for public URLs; an IPv6 address in brackets
   */
  #hostAt(address: string): string {
    const host = this.#config.public.host || (isWildcard(address) ? firstAddress() : address)
    return isIPv6(host) ? `[${host}]` : host
  }
}

/** URL of a port that is not for viewers. */
export function internalUrl(
  { apiHost, http, tls }: Pick<Config, 'apiHost' | 'http' | 'tls'>,
  port: number,
): string {
  const host = apiHost || http.host
  const name = isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${tls.cert === '' ? 'http' : 'https'}://${name}:${port}`
}

/** URL of the API for a program on the same machine; with TLS the public one, whose name the certificate has. */
export function apiUrl(config: Config): string {
  const { apiPort, http, tls } = config
  if (apiPort !== 0) return internalUrl(config, apiPort)
  if (tls.cert !== '') return new PublicUrls(config, { httpPort: http.port, srtPort: 0 }).http
  // `API_HOST` may be that of METRICS_PORT alone.
  return internalUrl({ ...config, apiHost: '' }, http.port)
}

function encrypted(passphrase: string): string {
  return `passphrase=${passphrase}&pbkeylen=32`
}

/** @returns first external address of this machine, preferably IPv4; 127.0.0.1 without an external address */
function firstAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const reachable = addresses.filter(
    ({ internal, address }) => !internal && !address.startsWith('fe80:'),
  )
  const first = reachable.find(({ family }) => family === 'IPv4') ?? reachable[0]
  return first?.address ?? '127.0.0.1'
}
