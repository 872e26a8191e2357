/**
 * HTTP clients as cheap as possible, for one request at a time.
 *
 * @module
 */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { connect, type Socket } from 'node:net'

/** @param body  valid during the call only */
export type OnReply = (status: number, body: Buffer) => void

export interface Lane {
  get(path: string, onReply: OnReply): void
}

/** Lanes of one viewer. */
export interface Lanes {
  readonly playlists: Lane
  readonly parts: Lane
}

export function openLanes(origin: URL): Lanes {
  if (origin.protocol === 'http:') {
    return { playlists: new SocketLane(origin), parts: new SocketLane(origin) }
  }
  const session = connectHttp2(origin, { rejectUnauthorized: false })
  return { playlists: new Http2Lane(session), parts: new Http2Lane(session) }
}

const HEAD_END = Buffer.from('\r\n\r\n')
/** Data is handled before the next read, so all sockets share a buffer. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)

/** HTTP/1.1 over one keep-alive connection. Replies have a Content-Length. */
class SocketLane implements Lane {
  readonly #host: string
  readonly #socket: Socket
  #onReply: OnReply | undefined
  #status = 0
  /** Head, then body, as far as they came in pieces. */
  #pieces: Buffer[] = []
  /** Bytes of the body that are missing; undefined before the end of the head. */
  #missing: number | undefined

  constructor({ hostname, port, host }: URL) {
    this.#host = host
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
    this.#socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nAccept-Encoding: gzip\r\n\r\n`,
    )
  }

  #read(bytes: Buffer): void {
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
      this.#missing = Number(/content-length: (\d+)/i.exec(head)?.[1])
      this.#pieces = []
      body = start.subarray(headEnd + HEAD_END.length)
    }
    this.#missing -= body.length
    if (this.#missing > 0) {
      this.#pieces.push(Buffer.from(body))
      return
    }
    const whole = this.#pieces.length === 0 ? body : Buffer.concat([...this.#pieces, body])
    this.#pieces = []
    this.#missing = undefined
    this.#onReply!(this.#status, whole)
  }
}

/** Requests of an HTTP/2 connection, which others may use too. */
class Http2Lane implements Lane {
  readonly #session: ClientHttp2Session

  constructor(session: ClientHttp2Session) {
    this.#session = session
  }

  get(path: string, onReply: OnReply): void {
    const stream = this.#session.request({ ':path': path, 'accept-encoding': 'gzip' })
    const pieces: Buffer[] = []
    let status = 0
    stream.on('response', (headers) => (status = headers[':status'] ?? 0))
    stream.on('data', (piece: Buffer) => pieces.push(piece))
    stream.on('end', () => onReply(status, Buffer.concat(pieces)))
  }
}
