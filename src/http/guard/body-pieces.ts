/**
 * Limit on the number of pieces of bodies: chunks of HTTP/1.1, DATA frames of HTTP/2. Each costs about as much as a
 * kilobyte, however few bytes it has.
 *
 * @module
 */
import type { Readable } from 'node:stream'

/** Maximum number of pieces at once, of any size: JSON may be written token by token. */
const MAX_PIECES = 128

/** Further pieces for each request, and for the bytes that have come. */
const PIECES_PER_REQUEST = 4
const BYTES_PER_PIECE = 128

/** Pieces that a client may still send: in a request of HTTP/1.1, on a connection of HTTP/2. */
export class PieceAllowance {
  #pieces = MAX_PIECES

  addRequest(): void {
    this.#add(PIECES_PER_REQUEST)
  }

  /** @returns whether the client may send a piece of this size */
  take(sizeBytes: number): boolean {
    this.#add(sizeBytes / BYTES_PER_PIECE)
    if (this.#pieces < 1) return false
    this.#pieces--
    return true
  }

  #add(pieces: number): void {
    this.#pieces = Math.min(this.#pieces + pieces, MAX_PIECES)
  }
}

interface PieceHandlers {
  /** Called when the client has sent the whole body, whether it is read or not. */
  readonly onEnd: () => void
  /** Called once for a body of too many pieces; this and all further ones are dropped. */
  readonly onTooMany: () => void
}

/**
 * Limits the pieces of a body, read or not.
 *
 * @param body  request of HTTP/1.1, or stream of HTTP/2, before its first piece
 */
export function limitPieces(
  body: Readable,
  allowance: PieceAllowance,
  { onEnd, onTooMany }: PieceHandlers,
): void {
  const push = body.push.bind(body)
  body.push = (piece: Buffer | null) => {
    if (piece === null) {
      onEnd()
      return push(null)
    }
    // A copy, since a view would retain a whole read of the socket until it is read itself.
    if (allowance.take(piece.length)) return push(Buffer.from(piece))
    body.push = () => false
    onTooMany()
    return false
  }
}
