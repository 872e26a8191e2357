/**
 * Limit on the number of pieces of a body: chunks of HTTP/1.1, DATA frames of HTTP/2. Each costs about as much as a
 * kilobyte, however few bytes it has.
 *
 * @module
 */
import type { Readable } from 'node:stream'

/**
 * Maximum number of pieces: some of any size, since JSON may be written token by token, and further ones for the bytes that
 * have come.
 */
const FREE_PIECES = 128
const BYTES_PER_PIECE = 128

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
export function limitPieces(body: Readable, { onEnd, onTooMany }: PieceHandlers): void {
  const push = body.push.bind(body)
  let [pieces, sizeBytes] = [0, 0]
  body.push = (piece: Buffer | null) => {
    if (piece === null) {
      onEnd()
      return push(null)
    }
    pieces++
    sizeBytes += piece.length
    // A copy, since a view would retain a whole read of the socket until it is read itself.
    if (pieces <= FREE_PIECES + sizeBytes / BYTES_PER_PIECE) return push(Buffer.from(piece))
    body.push = () => false
    onTooMany()
    return false
  }
}
