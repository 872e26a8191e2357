/**
 * Large bodies, piece by piece: encryption copies what is written, so a body written at once would be in memory for each
 * client that does not take it.
 *
 * @module
 */
import type { TurnQueue } from '../turn-queue.ts'

/** Maximum size of a piece. Smaller bodies do not wait for a turn, so a playlist overtakes segments. */
export const PIECE_BYTES = 64 * 1024

interface PieceWriter {
  /** Writes a piece, unless the client has left. `onSent` is to be called when the kernel has it. */
  write(piece: Buffer, onSent: () => void): void
  end(): void
}

/**
 * Sends bodies in pieces, one at a time, and ends the response.
 *
 * @param largeBodies  turns in which pieces are written; costs are in bytes
 */
export function sendPieces(
  bodies: readonly Buffer[],
  largeBodies: TurnQueue,
  writer: PieceWriter,
): void {
  const rest = piecesOf(bodies)
  const sendNext = () => {
    const { value: piece } = rest.next()
    if (piece === undefined) {
      writer.end()
      return
    }
    const write = () => writer.write(piece, sendNext)
    if (largeBodies.take(piece.length)) write()
    else largeBodies.add(write, piece.length)
  }
  sendNext()
}

/** Views of the bodies in order, each at most PIECE_BYTES long. */
function* piecesOf(bodies: readonly Buffer[]): Generator<Buffer, undefined> {
  for (const body of bodies) {
    for (let start = 0; start < body.length; start += PIECE_BYTES) {
      yield body.subarray(start, start + PIECE_BYTES)
    }
  }
  return undefined
}
