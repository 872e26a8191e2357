/**
 * Node's HTTP/2 reply, which waits for the client piece by piece: its stream holds one piece at a time, and what the
 * client has taken is known.
 *
 * @module
 */
import { Http2ServerResponse } from 'node:http2'
import type { TurnQueue } from './turn-queue.ts'

/** Maximum size of a piece. Smaller bodies do not wait for a turn, so a playlist overtakes segments. */
const PIECE_BYTES = 64 * 1024

export type GuardedHttp2Reply = Http2ServerResponse & {
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
export function guardedHttp2Replies(
  begin: (reply: GuardedHttp2Reply) => () => void,
  largeBodies: TurnQueue,
): typeof Http2ServerResponse {
  return class extends Http2ServerResponse {
    readonly bodies: Buffer[] = []
    sentBytes = 0

    constructor(...args: ConstructorParameters<typeof Http2ServerResponse>) {
      super(...args)
      // Not `finish`, which Node does not emit for a HEAD request whose client leaves before the reply.
      this.stream.once('close', begin(this))
    }

    /** Does nothing: a corked stream would not tell when a piece has left. */
    override cork(): void {
      // `end` corks small bodies.
    }

    /** Keeps the chunk until `end`: replies are complete when they begin. */
    override write(chunk: unknown): boolean {
      this.#add(chunk)
      return true
    }

    override end(...args: unknown[]): this {
      this.#add(args[0])
      const sizeBytes = this.bodies.reduce((sum, { length }) => sum + length, 0)
      if (sizeBytes <= PIECE_BYTES) {
        this.stream.cork()
        for (const body of this.bodies) super.write(body)
        return super.end()
      }
      this.#send(pieces(this.bodies))
      return this
    }

    #add(chunk: unknown): void {
      if (typeof chunk === 'string') this.bodies.push(Buffer.from(chunk))
      else if (chunk instanceof Uint8Array) this.bodies.push(chunk as Buffer)
    }

    #send(rest: Iterator<Buffer, undefined>): void {
      const { value: piece } = rest.next()
      if (piece === undefined) {
        super.end()
        return
      }
      const write = () => {
        if (this.stream.destroyed) return
        super.write(piece, 'utf8', (error) => {
          if (error) return
          this.sentBytes += piece.length
          this.#send(rest)
        })
      }
      if (largeBodies.take(piece.length)) write()
      else largeBodies.add(write, piece.length)
    }
  } as typeof Http2ServerResponse
}

/** Views of the bodies in order, each at most PIECE_BYTES long. */
function* pieces(bodies: readonly Buffer[]): Generator<Buffer, undefined> {
  for (const body of bodies) {
    for (let start = 0; start < body.length; start += PIECE_BYTES) {
      yield body.subarray(start, start + PIECE_BYTES)
    }
  }
  return undefined
}
