/**
 * One request of a connection at a time: the next is parsed when the kernel has the previous reply.
 *
 *     socket ──► gate ──► Node's parser ──► route ──► reply ──► kernel
 *                 ▲ └───── repeated head ───────────────▲ │
 *                 └─────────────── finished ──────────────┘
 *
 * Without the gate, Node parses all requests of a 64 KiB read at once, 2,500 of them at 2.9 KiB of heap each, before
 * the first reply can reveal that the client does not read. Bytes behind the gate stay in the buffer of the paused
 * socket.
 *
 * @module
 */
import type { Socket } from 'node:net'
import type { PendingReply } from './guarded-reply.ts'
import { rememberHead, repeatedPath, type KnownHead } from './known-head.ts'
import type { RepeatedRequests } from './repeated-requests.ts'
import type { TurnQueue } from './turn-queue.ts'

/** The only end of a head that Node accepts (RFC 9112 section 2.2 allows a bare LF as well). */
const HEAD_END = Buffer.from('\r\n\r\n')

/** Maximum size of a piece of a body, which has a turn: Node's parser takes 0.2 ms for 170 chunks of one byte. */
const MAX_BODY_PIECE_BYTES = 1024

export class RequestGate {
  readonly #socket: Socket
  readonly #parse: (bytes: Buffer) => void
  /** Schedules connections that may parse their next request. */
  readonly #turns: TurnQueue
  /** Unfinished replies, oldest first. At most two: the end of a body may come with the head of the next request. */
  readonly #replies: PendingReply[] = []
  readonly #repeated: RepeatedRequests
  /** Head of a request without a body, whose repetitions need not be parsed. */
  #known: KnownHead | undefined
  /** Whether Node's parser has got nothing but such heads, each as a whole: it expects another one. */
  #isBetweenRequests = true
  /** Whether the socket is paused, with the bytes behind the gate in its buffer. */
  #isHolding = false
  /** Whether the turn that the connection waited for has come and is not used yet. */
  #hasTurn = false

  /** Inserts itself between `socket` and Node's parser, which must already listen to it. */
  constructor(socket: Socket, turns: TurnQueue, repeated: RepeatedRequests) {
    const [parse] = socket.listeners('data') as [(bytes: Buffer) => void]
    this.#socket = socket
    this.#turns = turns
    this.#repeated = repeated
    this.#parse = parse
    socket.off('data', parse).on('data', (bytes: Buffer) => this.#read(bytes))
  }

  /** Replies that the kernel has not accepted, oldest first. */
  get replies(): readonly PendingReply[] {
    return this.#replies
  }

  /** Adds the reply to a request whose head has been parsed. */
  begin(reply: PendingReply): void {
    this.#replies.push(reply)
    reply.body?.on('resume', this.#releaseLater)
  }

  /** Removes the oldest reply, which the kernel has accepted, and lets the next request pass. */
  finish(): void {
    this.#replies.shift()
    this.#releaseLater()
  }

  /** Whether bytes may pass: no reply is unfinished, or only one, to a request whose body is being read. */
  get #isOpen(): boolean {
    const [oldest] = this.#replies
    return oldest === undefined || (this.#replies.length === 1 && isRead(oldest.body))
  }

  /**
   * Passes bytes on in pieces, each up to the end of a head, so that a piece holds at most one head. While a reply is
   * unfinished, only a body that is being read passes: Node's parser must get nothing while Node has paused the socket.
   */
  #read(bytes: Buffer): void {
    let start = 0
    // Not writable: Node is closing the connection and has stopped reading.
    while (start < bytes.length && this.#socket.writable && this.#isOpen && !this.#isHolding) {
      if (!this.#mayParse()) break
      const path = start === 0 ? this.#repeatedPath(bytes) : undefined
      if (path !== undefined && this.#answerRepeated(path)) return
      const head = bytes.indexOf(HEAD_END, start)
      const end = this.#endOfPiece(head === -1 ? bytes.length : head + HEAD_END.length, start)
      // Most reads are one request; a view would cost 1 µs.
      const piece = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end)
      this.#parse(piece)
      this.#isBetweenRequests &&= head !== -1 && this.#replies[0]?.req.complete === true
      this.#remember(piece)
      start = end
    }
    if (start < bytes.length && this.#socket.writable) this.#hold(bytes.subarray(start))
  }

  #endOfPiece(end: number, start: number): number {
    return this.#replies.length === 0 ? end : Math.min(end, start + MAX_BODY_PIECE_BYTES)
  }

  /** Whether bytes may be parsed now, which takes a turn, since a crowd may send much at once. */
  #mayParse(): boolean {
    const mayParse = this.#hasTurn || this.#turns.take()
    this.#hasTurn = false
    if (!mayParse) this.#turns.add(this.#release)
    return mayParse
  }

  #repeatedPath(bytes: Buffer): string | undefined {
    if (!this.#isBetweenRequests || this.#replies.length > 0) return undefined
    return this.#known && repeatedPath(this.#known, bytes)
  }

  #answerRepeated(url: string): boolean {
    const { headers } = this.#known!
    const socket = this.#socket
    return this.#repeated.answer({ url, headers, socket, httpVersionMajor: 1, complete: true })
  }

  /** Remembers the head that has just been parsed. */
  #remember(head: Buffer): void {
    const [reply] = this.#replies
    if (!this.#isBetweenRequests || reply?.shouldKeepAlive !== true) return
    this.#known = rememberHead(head, reply.req.headers, this.#known)
  }

  #hold(rest: Buffer): void {
    this.#isHolding = true
    this.#socket.pause()
    this.#socket.unshift(rest)
  }

  /** Releases in a later turn, so that other connections come first. */
  readonly #releaseLater = (): void => {
    if (this.#isHolding && this.#isOpen) this.#turns.add(this.#release)
  }

  readonly #release = (): void => {
    if (!this.#isOpen) return
    this.#isHolding = false
    this.#hasTurn = true
    this.#socket.resume()
  }
}

function isRead(body: PendingReply['body']): boolean {
  return body?.complete === false && body.readableFlowing === true
}
