/**
 * One request of a connection at a time: the next is parsed when the kernel has the previous response.
 *
 *     socket ──► gate ──► Node's parser ──► route ──► response ──► kernel
 *                 ▲                                       │
 *                 └─────────────── finished ──────────────┘
 *
 * Without the gate, Node parses all requests of a 64 KiB read at once, 2,500 of them at 2.9 KiB of heap each, before
 * the first response can reveal that the client does not read. Bytes behind the gate stay in the buffer of the paused
 * socket.
 *
 * @module
 */
import type { Socket } from 'node:net'
import type { GuardedResponse } from './guarded-response.ts'
import { takeListener } from './node-insides.ts'
import type { TurnQueue } from '../turn-queue.ts'

/** The only end of a head that Node accepts (RFC 9112 section 2.2 allows a bare LF as well). */
const HEAD_END = Buffer.from('\r\n\r\n')

/** Maximum size of a piece of a body, which has a turn: Node's parser takes 0.2 ms for 170 chunks of one byte. */
const MAX_BODY_PIECE_BYTES = 1024

export class RequestGate {
  readonly #socket: Socket
  readonly #parse: (bytes: Buffer) => void
  /** Schedules connections that may parse their next request. */
  readonly #turns: TurnQueue
  /** Unfinished responses, oldest first. At most two: the end of a body may come with the head of the next request. */
  readonly #responses: GuardedResponse[] = []
  /** Whether the socket is paused, with the bytes behind the gate in its buffer. */
  #isHolding = false
  /** Whether the turn that the connection waited for has come and is not used yet. */
  #hasTurn = false

  /** Inserts itself between `socket` and Node's parser, which must already listen to it. */
  constructor(socket: Socket, turns: TurnQueue) {
    this.#socket = socket
    this.#turns = turns
    this.#parse = takeListener(socket, 'data')
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
  }

  /** Responses that the kernel has not accepted, oldest first. */
  get responses(): readonly GuardedResponse[] {
    return this.#responses
  }

  /** Adds the response to a request whose head has been parsed. */
  begin(response: GuardedResponse): void {
    this.#responses.push(response)
    response.body?.on('resume', this.#releaseLater)
  }

  /** Removes the oldest response, which the kernel has accepted, and lets the next request pass. */
  finish(): void {
    this.#responses.shift()
    this.#releaseLater()
  }

  /** Whether bytes may pass: no response is unfinished, or only one, to a request whose body is being read. */
  get #isOpen(): boolean {
    const [oldest] = this.#responses
    return oldest === undefined || (this.#responses.length === 1 && isRead(oldest.body))
  }

  /**
   * Passes bytes on in pieces, each up to the end of a head, so that a piece holds at most one head. While a response is
   * unfinished, only a body that is being read passes: Node's parser must get nothing while Node has paused the socket.
   */
  #read(bytes: Buffer): void {
    let start = 0
    // Not writable: Node is closing the connection and has stopped reading.
    while (start < bytes.length && this.#socket.writable && this.#isOpen && !this.#isHolding) {
      if (!this.#mayParse()) break
      const head = bytes.indexOf(HEAD_END, start)
      const end = this.#endOfPiece(head === -1 ? bytes.length : head + HEAD_END.length, start)
      // Most reads are one request; a view would cost 1 µs.
      const piece = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end)
      this.#parse(piece)
      start = end
    }
    if (start < bytes.length && this.#socket.writable) this.#hold(bytes.subarray(start))
  }

  #endOfPiece(end: number, start: number): number {
    return this.#responses.length === 0 ? end : Math.min(end, start + MAX_BODY_PIECE_BYTES)
  }

  /** Whether bytes may be parsed now, which takes a turn, since a crowd may send much at once. */
  #mayParse(): boolean {
    const mayParse = this.#hasTurn || this.#turns.take()
    this.#hasTurn = false
    if (!mayParse) this.#turns.add(this.#release)
    return mayParse
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

function isRead(body: GuardedResponse['body']): boolean {
  return body?.complete === false && body.readableFlowing === true
}
