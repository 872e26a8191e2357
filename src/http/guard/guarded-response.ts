/**
 * Node's response with events for its start and its end, and turns for large bodies, which go out in pieces over TLS.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import { ServerResponse, type IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { TurnQueue } from '../turn-queue.ts'
import { PIECE_BYTES, sendPieces } from './send-pieces.ts'

/** Response that the kernel has not accepted. */
export interface GuardedResponse extends ServerResponse {
  /** The request, if it has a body. */
  readonly body: IncomingMessage | undefined
  /** Buffers of the body; other connections may send the same buffers. */
  readonly bodies: readonly Buffer[]
}

interface ResponseWatcher {
  /** Called when the head of a request has been parsed; `response` answers it. */
  begin(response: GuardedResponse): void
  /** Called when the kernel has the whole response; not if the connection ends earlier. */
  finish(response: GuardedResponse): void
}

/**
 * Class for the option `ServerResponse` of `node:http`; it also covers responses that Node itself makes.
 *
 * @param largeBodies  turns in which large bodies go to the kernel; costs are in bytes
 */
export function guardedResponses(
  watcher: ResponseWatcher,
  largeBodies: TurnQueue,
): typeof ServerResponse {
  // One listener for all responses: a closure for each costs 0.5 µs.
  function finish(this: GuardedResponse): void {
    watcher.finish(this)
  }

  return class extends ServerResponse {
    readonly body = hasBody(this.req) ? this.req : undefined
    readonly bodies: Buffer[] = []
    readonly #isEncrypted = this.req.socket instanceof TLSSocket

    constructor(...args: ConstructorParameters<typeof ServerResponse>) {
      super(...args)
      watcher.begin(this)
      this.on('finish', finish)
    }

    override writeHead(...args: unknown[]): this {
      // RFC 9112 section 9.3: the next request cannot be read before the whole body, which nobody reads.
      if (this.body?.complete === false) this.shouldKeepAlive = false
      return super.writeHead(...(args as [number]))
    }

    /** Does nothing over TLS: a corked socket would not tell when a piece has left. */
    override cork(): void {
      if (!this.#isEncrypted) super.cork()
    }

    /** Over TLS, keeps a buffer until `end`. */
    override write(...args: unknown[]): boolean {
      const isKept = this.#addBody(args[0]) && this.#isEncrypted
      return isKept || super.write(...(args as [unknown, BufferEncoding]))
    }

    override end(...args: unknown[]): this {
      this.#addBody(args[0])
      if (this.bodies.length === 0) return super.end(...(args as [unknown, BufferEncoding]))
      const sizeBytes = totalBytes(this.bodies)
      const isSmall = sizeBytes <= PIECE_BYTES
      if (this.#isEncrypted) return isSmall ? this.#sendWhole() : this.#sendPieces()
      const end = () => super.end(...(args as [unknown, BufferEncoding]))
      if (isSmall || largeBodies.take(sizeBytes)) return end()
      // The chunks of earlier writes wait as well, since playback corks the response.
      largeBodies.add(() => {
        if (!this.destroyed) end()
      }, sizeBytes)
      return this
    }

    #sendWhole(): this {
      super.cork()
      for (const body of this.bodies) super.write(body)
      return super.end()
    }

    #sendPieces(): this {
      sendPieces(this.bodies, largeBodies, {
        write: (piece, onSent) => {
          if (this.destroyed) return
          super.write(piece, (error) => {
            if (!error) onSent()
          })
        },
        end: () => super.end(),
      })
      return this
    }

    /** @returns whether it is a buffer */
    #addBody(chunk: unknown): boolean {
      if (!(chunk instanceof Uint8Array)) return false
      this.bodies.push(chunk as Buffer)
      return true
    }
  } as typeof ServerResponse
}

/** RFC 9112 section 6. */
function hasBody({ headers }: IncomingMessage): boolean {
  return 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0
}
