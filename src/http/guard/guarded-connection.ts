/**
 * An admitted HTTP/1.1 connection: its request gate, its reading rate, and the memory it holds.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import type { Socket } from 'node:net'
import type { Holder, UncachedMemory } from './held-memory.ts'
import { ReaderProgress } from './reader-progress.ts'
import { RequestGate } from './request-gate.ts'
import type { TurnQueue } from '../turn-queue.ts'

/** Calling order: `isSlow` about once a second while a response is unfinished, then `holder`. */
export class GuardedConnection {
  /** TCP socket, below TLS if there is any. */
  readonly socket: Socket
  readonly gate: RequestGate
  /** Socket that Node's HTTP parser reads. */
  readonly #parsed: Socket
  readonly #progress = new ReaderProgress()

  /** @param parsed  the same socket, or the TLS socket on it; Node's HTTP parser must already listen to it */
  constructor(socket: Socket, parsed: Socket, turns: TurnQueue) {
    this.socket = socket
    this.#parsed = parsed
    this.gate = new RequestGate(parsed, turns)
  }

  get isBusy(): boolean {
    return this.gate.responses.length > 0
  }

  /** Whether a rate window has ended in which the client read too slowly, see `ReaderProgress`. */
  isSlow(nowMs: number): boolean {
    return this.#progress.observe(sentBytes(this.socket), this.#parsed.writableLength, nowMs)
  }

  /** Memory that the connection holds, without the bodies that are in the cache, and its reading rate. */
  holder(uncachedMemory: UncachedMemory, nowMs: number): Holder {
    const { readableLength, writableLength } = this.#parsed
    const { responses } = this.gate
    const bodies = responses.flatMap((response) => response.bodies)
    // Encryption has copied what is written of the bodies.
    const sharedBytes = this.#parsed === this.socket ? totalBytes(bodies) : 0
    return {
      ownBytes: readableLength + Math.max(writableLength - sharedBytes, 0),
      bodies: responses.flatMap((response) =>
        uncachedMemory(response.req.url ?? '', response.bodies),
      ),
      bytesPerSec: this.#progress.bytesPerSec(sentBytes(this.socket), nowMs),
    }
  }
}

/** Bytes accepted by the kernel, encrypted ones with TLS. `Socket.bytesWritten` includes bytes that wait in Node: it grows by whole segments. */
function sentBytes(socket: Socket): number {
  const handle = handleOf(socket)
  return handle === null ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/** Reads no more of a socket that is about to close; libuv would read up to 2 MiB at once. */
export function stopReading(socket: Socket): void {
  handleOf(socket)?.readStop()
}

/** Node's handle of a socket. */
interface StreamHandle {
  /** Bytes written to the handle, including bytes that wait in its queue. */
  readonly bytesWritten: number
  /** Bytes that the kernel has not accepted yet. */
  readonly writeQueueSize: number
  readStop(): void
}

function handleOf(socket: Socket): StreamHandle | null {
  const { _handle: handle } = socket as unknown as { readonly _handle: StreamHandle | null }
  return handle
}
