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

export interface LanesOptions {
  /** Whether no media is fetched: servers close connections without a request; default: false. */
  readonly isPlaylistOnly?: boolean
  /** Called when an HTTP/1.1 connection is lost; its request is sent again on another. Default: a loss is an error. */
  readonly onLost?: () => void
}

export function openLanes(
  origin: URL,
  { isPlaylistOnly = false, onLost }: LanesOptions = {},
): Lanes {
  if (origin.protocol === 'http:') {
    const playlists = new SocketLane(origin, true, onLost)
    return { playlists, media: isPlaylistOnly ? playlists : new SocketLane(origin, false, onLost) }
  }
  const session = connectHttp2(origin, { rejectUnauthorized: false })
  return { playlists: new Http2Lane(session, true), media: new Http2Lane(session, false) }
}

const HEAD_END = Buffer.from('\r\n\r\n')
/** Data is handled before the next read, so all sockets share a buffer. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)

/** Pause behind a connection that brought nothing. */
const RECONNECT_MS = 50

const NO_BODY = Buffer.alloc(0)

/** HTTP/1.1 over one keep-alive connection. Replies have a Content-Length. */
class SocketLane implements Lane {
  readonly #origin: URL
  readonly #keepsBody: boolean
  readonly #onLost: (() => void) | undefined
  #socket: Socket
  /** Path that was requested and is not answered. */
  #path: string | undefined
  #onReply: OnReply | undefined
  #sentMs = 0
  #firstByteMs = 0
  #status = 0
  /** Head, then body, as far as they came in pieces. */
  #pieces: Buffer[] = []
  #sizeBytes = 0
  /** Bytes of the body that are missing; undefined before the end of the head. */
  #missing: number | undefined

  constructor(origin: URL, keepsBody: boolean, onLost?: () => void) {
    this.#origin = origin
    this.#keepsBody = keepsBody
    this.#onLost = onLost
    this.#socket = this.#connect()
  }

  get(path: string, onReply: OnReply): void {
    this.#onReply = onReply
    this.#sentMs = performance.now()
    this.#firstByteMs = 0
    this.#path = path
    this.#send(path)
  }

  #connect(): Socket {
    const { hostname, port } = this.#origin
    const socket = connect({
      ...{ host: hostname, port: Number(port), noDelay: true },
      onread: {
        buffer: READ_BUFFER,
        callback: (size) => {
          this.#read(READ_BUFFER.subarray(0, size))
          return true
        },
      },
    })
    // Without a listener it would be thrown; `close` follows.
    if (this.#onLost !== undefined) socket.on('error', () => undefined)
    return socket.once('close', () => this.#lose())
  }

  #lose(): void {
    if (this.#onLost === undefined) {
      throw new Error('the service closed the connection of a viewer')
    }
    this.#onLost()
    this.#pieces = []
    this.#missing = undefined
    const connect = () => {
      this.#socket = this.#connect()
      if (this.#path !== undefined) this.#send(this.#path)
    }
    // Where nobody listens, the next attempt waits.
    if (this.#socket.bytesRead > 0) connect()
    else setTimeout(connect, RECONNECT_MS)
  }

  #send(path: string): void {
    this.#socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${this.#origin.host}\r\nAccept-Encoding: gzip\r\n\r\n`,
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
    this.#path = undefined
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
