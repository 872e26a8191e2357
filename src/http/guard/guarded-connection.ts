/**
 * An admitted connection: its request gate, its reading rate, and the memory it holds.
 *
 * @module
 */
import type { Socket } from 'node:net'
import type { PlaybackSource } from '../../contract/streams.ts'
import { uncachedMemory } from './cached-body.ts'
import type { Holder } from './held-memory.ts'
import { ReaderProgress } from './reader-progress.ts'
import { RequestGate } from './request-gate.ts'
import type { TurnQueue } from './turn-queue.ts'

/** Calling order: `isSlow` about once a second, then `holder` for its memory and rate. */
export class GuardedConnection {
  readonly socket: Socket
  readonly gate: RequestGate
  readonly #progress = new ReaderProgress()

  /** @param socket  Node's HTTP parser must already listen to it */
  constructor(socket: Socket, turns: TurnQueue) {
    this.socket = socket
    this.gate = new RequestGate(socket, turns)
  }

  /** Whether the client read too slowly over a whole window. */
  isSlow(nowMs: number): boolean {
    return this.#progress.observe(sentBytes(this.socket), this.socket.writableLength, nowMs)
  }

  /** Memory of waiting replies, without bodies that `playback` still has. */
  holder(playback: PlaybackSource, nowMs: number): Holder {
    const { readableLength, writableLength } = this.socket
    const { replies } = this.gate
    const bodies = replies.flatMap((reply) => reply.bodies)
    const bodyBytes = bodies.reduce((sum, { length }) => sum + length, 0)
    return {
      ownBytes: readableLength + Math.max(writableLength - bodyBytes, 0),
      bodies: replies.flatMap((reply) =>
        uncachedMemory(playback, reply.req.url ?? '', reply.bodies),
      ),
      bytesPerSec: this.#progress.bytesPerSec(sentBytes(this.socket), nowMs),
    }
  }
}

/** Bytes passed to the kernel. `Socket.bytesWritten` includes bytes that still wait, so it grows by whole segments. */
function sentBytes(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle: StreamHandle | null }
  return handle === null ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/** Counters by which Node distinguishes a stalled connection from a slow one (`Socket._onTimeout`). */
interface StreamHandle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}
