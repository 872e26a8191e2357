/**
 * Node's HTTP/2 response, which waits for the client piece by piece: its stream holds one piece at a time, and what the
 * client has taken is known.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import { Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import type { TurnQueue } from '../turn-queue.ts'
import { PIECE_BYTES, sendPieces } from './send-pieces.ts'

/**
 * Maximum size of a body that is sent before the end of the request, such as that of a refusal. While a request goes on,
 * Node writes more than this at once as nghttp2 reads, see http2-streams.ts.
 */
const MAX_EARLY_BYTES = 4096

export type GuardedHttp2Response = Http2ServerResponse & {
  /** Buffers of the body; other connections may send the same buffers. */
  readonly bodies: readonly Buffer[]
  /** Size of the part of the body that has left for the kernel. */
  readonly sentBytes: number
}

/**
 * Class for the option `Http2ServerResponse` of `node:http2`.
 *
 * @param begin  called for each request; returns a function that is called when the stream has ended
 * @param largeBodies  turns in which pieces of large bodies go to the session; costs are in bytes
 */
export function guardedHttp2Responses(
  begin: (response: GuardedHttp2Response) => () => void,
  largeBodies: TurnQueue,
): typeof Http2ServerResponse {
  return class extends Http2ServerResponse {
    readonly bodies: Buffer[] = []
    sentBytes = 0

    constructor(...args: ConstructorParameters<typeof Http2ServerResponse>) {
      super(...args)
      // Not `finish`, which Node does not emit for a HEAD request whose client leaves before the response.
      this.stream.once('close', begin(this))
    }

    /** Does nothing: a corked stream would not tell when a piece has left. */
    override cork(): void {
      // `end` corks small bodies.
    }

    /** Keeps the chunk until `end`: responses are complete when they begin. */
    override write(chunk: unknown): boolean {
      this.#add(chunk)
      return true
    }

    override end(...args: unknown[]): this {
      this.#add(args[0])
      const sizeBytes = totalBytes(this.bodies)
      if (sizeBytes <= MAX_EARLY_BYTES || hasSentRequest(this.stream)) this.#send(sizeBytes)
      else this.stream.once('end', () => this.#send(sizeBytes)).resume()
      return this
    }

    #send(sizeBytes: number): void {
      if (sizeBytes <= PIECE_BYTES) {
        this.stream.cork()
        for (const body of this.bodies) super.write(body)
        super.end()
        return
      }
      sendPieces(this.bodies, largeBodies, {
        write: (piece, onSent) => {
          if (this.stream.destroyed) return
          super.write(piece, 'utf8', (error) => {
            if (error) return
            this.sentBytes += piece.length
            onSent()
          })
        },
        end: () => super.end(),
      })
    }

    #add(chunk: unknown): void {
      // Node has ended the stream: a write is an error, with which it would close before the client has the head.
      if (this.req.method === 'HEAD') return
      if (typeof chunk === 'string') this.bodies.push(Buffer.from(chunk))
      else if (chunk instanceof Uint8Array) this.bodies.push(chunk as Buffer)
    }
  } as typeof Http2ServerResponse
}

/** Whether the client has sent its whole request, read or not. */
export function hasSentRequest(stream: ServerHttp2Stream): boolean {
  return stream.endAfterHeaders || stream.state.remoteClose === 1
}
