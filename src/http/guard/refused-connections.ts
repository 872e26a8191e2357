/**
 * Connections beyond the limit: a word of refusal to as many as that costs little for, none to the others.
 *
 * @module
 */
import type { Socket } from 'node:net'
import { MillraceError } from '../../errors.ts'
import { formatRefusal } from '../error-handler.ts'

/** Refused connections that are open at once. */
export const MAX_REFUSED = 128

/** Until then the client has its answer; closed earlier, with its request unread, it might see none. */
const LINGER_MS = 1000

const ANSWER = formatRefusal(new MillraceError('TOO_MANY_HTTP_CONNECTIONS'), {
  headers: 'Access-Control-Allow-Origin: *\r\nRetry-After: 5\r\n',
})

/** No request of these is ever parsed. Times are milliseconds of one clock that never goes back. */
export class RefusedConnections {
  /** When each is destroyed; the oldest first. */
  readonly #endsMs = new Map<Socket, number>()

  refuse(socket: Socket, nowMs: number): void {
    if (this.#endsMs.size >= MAX_REFUSED) {
      socket.destroy()
      return
    }
    this.#endsMs.set(socket, nowMs + LINGER_MS)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#endsMs.delete(socket))
    socket.resume().end(ANSWER)
  }

  /** Closes those whose client did not. */
  sweep(nowMs: number): void {
    for (const [socket, endMs] of this.#endsMs) if (nowMs >= endMs) socket.destroy()
  }

  /** Closes them all. */
  destroy(): void {
    for (const socket of this.#endsMs.keys()) socket.destroy()
  }
}
