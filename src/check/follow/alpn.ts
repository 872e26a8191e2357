/**
 * Protocol of an HTTPS origin, by ALPN: `fetch` of Node speaks HTTP/1.1 alone and cannot tell.
 *
 * @module
 */
import { isIP } from 'node:net'
import { connect } from 'node:tls'

const TIMEOUT_MS = 10_000

/** Protocols by origin; one connection each. */
export class OriginProtocols {
  readonly #protocols = new Map<string, Promise<'http/1.1' | 'h2'>>()

  /** @returns `http/1.1` without TLS, and where the origin cannot be asked */
  find(url: string): Promise<'http/1.1' | 'h2'> {
    const { protocol, origin, hostname, port } = new URL(url)
    if (protocol !== 'https:') return Promise.resolve('http/1.1')
    const known = this.#protocols.get(origin)
    if (known !== undefined) return known
    const asked = askProtocol(hostname.replace(/^\[|\]$/g, ''), Number(port) || 443)
    this.#protocols.set(origin, asked)
    return asked
  }
}

function askProtocol(host: string, port: number): Promise<'http/1.1' | 'h2'> {
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      ...(isIP(host) === 0 && { servername: host }),
      ALPNProtocols: ['h2', 'http/1.1'],
      // Nothing is sent on this connection; `fetch` checks the certificate.
      rejectUnauthorized: false,
    })
    const end = () => {
      resolve(socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1')
      socket.destroy()
    }
    socket.setTimeout(TIMEOUT_MS, end)
    socket.once('secureConnect', end)
    socket.once('error', end)
  })
}
