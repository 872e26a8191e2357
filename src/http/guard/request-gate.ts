/**
 * Requests of one connection, one at a time: the next is parsed when the reply before it has gone to the kernel.
 *
 *     socket ──► gate ──► Node's parser ──► route ──► reply ──► kernel
 *                  ▲                                    │
 *                  └──────────── finished ──────────────┘
 *
 * Left to itself, Node parses all the requests of a read of 64 KiB, 2,500 of them at 2.9 KiB of heap each, before the first
 * reply can show that nobody reads it. What is behind the gate stays in the buffer of the socket, which reads no more.
 *
 * @module
 */
import type { Socket } from 'node:net'
import type { GuardedReply } from './guarded-reply.ts'
import type { TurnQueue } from './turn-queue.ts'

/** Node takes nothing else for the end of a request's head (RFC 9112 section 2.2 would let it). */
const HEAD_END = Buffer.from('\r\n\r\n')

export class RequestGate {
  readonly #socket: Socket
  readonly #parse: (bytes: Buffer) => void
  /** Who is behind the gate and may go on. */
  readonly #turns: TurnQueue
  /** Oldest first. Two at most: a body may carry the head of the next request along. */
  readonly #replies: GuardedReply[] = []
  #isHolding = false
  /** It waited for its turn, and has it. */
  #hasTurn = false

  /** Steps between `socket` and Node's parser, which must listen to it already. */
  constructor(socket: Socket, turns: TurnQueue) {
    const [parse] = socket.listeners('data') as [(bytes: Buffer) => void]
    this.#socket = socket
    this.#turns = turns
    this.#parse = parse
    socket.off('data', parse).on('data', (bytes: Buffer) => this.#read(bytes))
  }

  /** Replies that the kernel has not taken, the oldest first. */
  get replies(): readonly GuardedReply[] {
    return this.#replies
  }

  /** A request was parsed, and this will answer it. */
  begin(reply: GuardedReply): void {
    this.#replies.push(reply)
  }

  /** The kernel has taken the oldest reply. */
  finish(): void {
    this.#replies.shift()
    // Not at once, so that others have their turn before this one has its next.
    if (this.#isHolding && this.#isOpen) this.#turns.add(this.#release)
  }

  get #isOpen(): boolean {
    const [oldest] = this.#replies
    // The rest of a body is let through.
    return oldest === undefined || (this.#replies.length === 1 && !oldest.req.complete)
  }

  /**
   * Each bite ends with a head, so that it holds one request at most. While a reply waits for the kernel nothing is parsed
   * but the body of its own request: Node's parser must get nothing when Node has paused the socket.
   */
  #read(bytes: Buffer): void {
    let start = 0
    // Not writable: Node has closed the connection or will, and reads no more.
    while (start < bytes.length && this.#socket.writable && this.#isOpen && !this.#isHolding) {
      if (!this.#mayParse()) break
      const head = bytes.indexOf(HEAD_END, start)
      const end = head === -1 ? bytes.length : head + HEAD_END.length
      // As a rule a read is one request: a view of it would cost 1 µs.
      this.#parse(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end))
      start = end
    }
    if (start < bytes.length && this.#socket.writable) this.#hold(bytes.subarray(start))
  }

  /** A request needs a turn, since a crowd may ask at once; the body of one that has begun does not. */
  #mayParse(): boolean {
    const mayParse = this.#replies.length > 0 || this.#hasTurn || this.#turns.take()
    this.#hasTurn = false
    if (!mayParse) this.#turns.add(this.#release)
    return mayParse
  }

  #hold(rest: Buffer): void {
    this.#isHolding = true
    this.#socket.pause()
    this.#socket.unshift(rest)
  }

  readonly #release = (): void => {
    if (!this.#isOpen) return
    this.#isHolding = false
    this.#hasTurn = true
    this.#socket.resume()
  }
}
