/**
 * Connections beyond the limit, or without TLS: a response to a bounded number of them, a plain close for the others.
 *
 * @module
 */
import type { Socket } from 'node:net'
import { MillraceError } from '../../errors.ts'
import { formatRefusal } from '../error-handler.ts'

/** Maximum number of refused connections that are open at once. */
export const MAX_REFUSED = 128

/** Time for the client to read the response. Closing a socket with an unread request discards the response. */
const LINGER_MS = 1000

const RESPONSES = {
  TOO_MANY_HTTP_CONNECTIONS: formatRefusal(new MillraceError('TOO_MANY_HTTP_CONNECTIONS'), {
    headers: 'Access-Control-Allow-Origin: *\r\nRetry-After: 5\r\n',
  }),
  HTTPS_REQUIRED: formatRefusal(new MillraceError('HTTPS_REQUIRED')),
}

/** Refused connections, whose requests are not parsed. Times are in milliseconds of a monotonic clock. */
export class RefusedConnections {
  /** Time at which each connection is destroyed, the earliest first. */
  readonly #endsMs = new Map<Socket, number>()

  refuse(socket: Socket, nowMs: number, code: keyof typeof RESPONSES): void {
    if (this.#endsMs.size >= MAX_REFUSED) {
      socket.destroy()
      return
    }
    this.#endsMs.set(socket, nowMs + LINGER_MS)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#endsMs.delete(socket))
    socket.resume().end(RESPONSES[code])
  }

  /** Closes connections that their clients have not closed in time. */
  sweep(nowMs: number): void {
    for (const [socket, endMs] of this.#endsMs) if (nowMs >= endMs) socket.destroy()
  }

  /** Closes all connections. */
  destroy(): void {
    for (const socket of this.#endsMs.keys()) socket.destroy()
  }
}
