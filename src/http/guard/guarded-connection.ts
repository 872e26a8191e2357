/**
 * One connection that was admitted: its gate, how fast it reads, and what it keeps in memory.
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

/** Ask `isSlow` about once a second; `holder` says at what rate it has read since. */
export class GuardedConnection {
  readonly socket: Socket
  readonly gate: RequestGate
  readonly #progress = new ReaderProgress()

  /** @param socket  which Node's HTTP parser listens to already */
  constructor(socket: Socket, turns: TurnQueue) {
    this.socket = socket
    this.gate = new RequestGate(socket, turns)
  }

  /** Whether the reader was too slow for too long. */
  isSlow(nowMs: number): boolean {
    return this.#progress.observe(sentBytes(this.socket), this.socket.writableLength, nowMs)
  }

  /** What waits, without the bodies that `playback` still has. */
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

/**
 * Bytes that the kernel has taken. `Socket.bytesWritten` counts those as well that wait for it, so a segment is one step.
 */
function sentBytes(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle: StreamHandle | null }
  return handle === null ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/** What Node itself tells a stalled connection from a slow one by (`Socket._onTimeout`). */
interface StreamHandle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}
