/**
 * Connections before TLS: the handshake begins when the client has sent its first bytes, and a few at a time, since
 * each costs an operation with the private key. A client that sends nothing costs no TLS state.
 *
 * @module
 */
import type { Socket } from 'node:net'
import { TurnQueue } from '../turn-queue.ts'

/** First byte of a TLS connection: content type `handshake` (RFC 8446 section 5.1). */
const HANDSHAKE = 22

/** Maximum number of handshakes begun per turn of the event loop: with RSA-2048 one takes 1.2 ms, with P-256 0.7 ms. */
const MAX_HANDSHAKES_PER_TURN = 4

/** Time limit for the first bytes. */
const FIRST_BYTES_MS = 10_000

interface BeforeTls {
  /** Called when the TLS handshake may begin; the socket has its first bytes unread. */
  readonly shake: (socket: Socket) => void
  /** Called for a client that does not speak TLS, probably plain HTTP. */
  readonly refuse: (socket: Socket) => void
}

export class TlsHandshakes {
  readonly #turns = new TurnQueue(MAX_HANDSHAKES_PER_TURN)
  readonly #handlers: BeforeTls

  constructor(handlers: BeforeTls) {
    this.#handlers = handlers
  }

  /** Waits for the first bytes of a new connection. */
  await(socket: Socket): void {
    socket.on('error', () => undefined)
    socket.setTimeout(FIRST_BYTES_MS, () => socket.destroy())
    socket.once('readable', () => {
      socket.setTimeout(0)
      const first = socket.read() as Buffer | null
      if (first === null) {
        socket.destroy()
        return
      }
      socket.unshift(first)
      if (first[0] !== HANDSHAKE) this.#handlers.refuse(socket)
      else if (this.#turns.take()) this.#handlers.shake(socket)
      else this.#turns.add(() => this.#shakeLater(socket))
    })
  }

  #shakeLater(socket: Socket): void {
    if (!socket.destroyed) this.#handlers.shake(socket)
  }
}
