/**
 * An admitted HTTP/1.1 connection: its request gate, its reading rate, and the memory it holds.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import type { Socket } from 'node:net'
import type { Holder, UncachedMemory } from './held-memory.ts'
import { acceptedBytes } from './node-insides.ts'
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
    return this.#progress.observe(acceptedBytes(this.socket), this.#parsed.writableLength, nowMs)
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
      bytesPerSec: this.#progress.bytesPerSec(acceptedBytes(this.socket), nowMs),
    }
  }
}
