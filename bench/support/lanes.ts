/**
 * HTTP clients as cheap as possible, for one request at a time.
 *
 * @module
 */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { connect, type Socket } from 'node:net'

export interface Reply {
  readonly status: number
  /** Valid during the call only; empty on a lane for media. */
  readonly body: Buffer
  readonly sizeBytes: number
  /** From the request to the first byte. */
  readonly firstByteMs: number
}

export type OnReply = (reply: Reply) => void

export interface Lane {
  get(path: string, onReply: OnReply): void
}

/** Lanes of one viewer. */
export interface Lanes {
  readonly playlists: Lane
  /** Counts bytes and forgets them. */
  readonly media: Lane
}

export function openLanes(origin: URL): Lanes {
  if (origin.protocol === 'http:') {
    return { playlists: new SocketLane(origin, true), media: new SocketLane(origin, false) }
  }
  const session = connectHttp2(origin, { rejectUnauthorized: false })
  return { playlists: new Http2Lane(session, true), media: new Http2Lane(session, false) }
}

const HEAD_END = Buffer.from('\r\n\r\n')
/** Data is handled before the next read, so all sockets share a buffer. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)

const NO_BODY = Buffer.alloc(0)

/** HTTP/1.1 over one keep-alive connection. Replies have a Content-Length. */
class SocketLane implements Lane {
  readonly #host: string
  readonly #socket: Socket
  readonly #keepsBody: boolean
  #onReply: OnReply | undefined
  #sentMs = 0
  #firstByteMs = 0
  #status = 0
  /** Head, then body, as far as they came in pieces. */
  #pieces: Buffer[] = []
  #sizeBytes = 0
  /** Bytes of the body that are missing; undefined before the end of the head. */
  #missing: number | undefined

  constructor({ hostname, port, host }: URL, keepsBody: boolean) {
    this.#host = host
    this.#keepsBody = keepsBody
    this.#socket = connect({
      ...{ host: hostname, port: Number(port), noDelay: true },
      onread: {
        buffer: READ_BUFFER,
        callback: (size) => {
          this.#read(READ_BUFFER.subarray(0, size))
          return true
        },
      },
    })
    this.#socket.once('close', () => {
      throw new Error('the service closed the connection of a viewer')
    })
  }

  get(path: string, onReply: OnReply): void {
    this.#onReply = onReply
    this.#sentMs = performance.now()
    this.#firstByteMs = 0
    this.#socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nAccept-Encoding: gzip\r\n\r\n`,
    )
  }

  #read(bytes: Buffer): void {
    if (this.#firstByteMs === 0) this.#firstByteMs = performance.now() - this.#sentMs
    let body = bytes
    if (this.#missing === undefined) {
      const start = this.#pieces.length === 0 ? bytes : Buffer.concat([...this.#pieces, bytes])
      const headEnd = start.indexOf(HEAD_END)
      if (headEnd < 0) {
        this.#pieces = [Buffer.from(start)]
        return
      }
      const head = start.toString('latin1', 0, headEnd)
      this.#status = Number(head.slice(9, 12))
      this.#sizeBytes = Number(/content-length: (\d+)/i.exec(head)?.[1])
      this.#missing = this.#sizeBytes
      this.#pieces = []
      body = start.subarray(headEnd + HEAD_END.length)
    }
    this.#missing -= body.length
    if (this.#missing > 0) {
      if (this.#keepsBody) this.#pieces.push(Buffer.from(body))
      return
    }
    const whole = this.#pieces.length === 0 ? body : Buffer.concat([...this.#pieces, body])
    this.#pieces = []
    this.#missing = undefined
    this.#onReply!({
      status: this.#status,
      body: this.#keepsBody ? whole : NO_BODY,
      sizeBytes: this.#sizeBytes,
      firstByteMs: this.#firstByteMs,
    })
  }
}

/** Requests of an HTTP/2 connection, which others may use too. */
class Http2Lane implements Lane {
  readonly #session: ClientHttp2Session
  readonly #keepsBody: boolean

  constructor(session: ClientHttp2Session, keepsBody: boolean) {
    this.#session = session
    this.#keepsBody = keepsBody
  }

  get(path: string, onReply: OnReply): void {
    const sentMs = performance.now()
    const stream = this.#session.request({ ':path': path, 'accept-encoding': 'gzip' })
    const pieces: Buffer[] = []
    let [status, sizeBytes, firstByteMs] = [0, 0, 0]
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0
      firstByteMs = performance.now() - sentMs
    })
    stream.on('data', (piece: Buffer) => {
      sizeBytes += piece.length
      if (this.#keepsBody) pieces.push(piece)
    })
    stream.on('end', () => onReply({ status, body: Buffer.concat(pieces), sizeBytes, firstByteMs }))
  }
}
