/**
 * HTTP/2 as bytes, for clients that send what no library sends.
 *
 * @module
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'

/** RFC 9113 section 3.4. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Types of frames (RFC 9113 section 6). */
export const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [
  0, 1, 3, 4, 6, 7, 8,
]

/** Flags of HEADERS, and of a SETTINGS frame that acknowledges one. */
export const [END_STREAM, ACK, END_HEADERS] = [1, 1, 4]

/** Offset of the stream identifier in a frame. */
export const STREAM_ID_AT = 5

interface FrameFields {
  readonly flags?: number
  readonly stream?: number
  readonly payload?: Buffer
}

/** A frame (RFC 9113 section 4.1). */
export function frame(
  type: number,
  { flags = 0, stream = 0, payload = Buffer.alloc(0) }: FrameFields = {},
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, STREAM_ID_AT)
  return Buffer.concat([head, payload])
}

interface Head {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Header fields of a request, each a literal without indexing, with a new name (RFC 7541 section 6.2.2). */
export function requestHead({ method = 'GET', path, headers = {} }: Head): Buffer {
  const text = (each: string) => Buffer.concat([Buffer.of(each.length), Buffer.from(each)])
  const fields = {
    ':method': method,
    ':scheme': 'https',
    ':path': path,
    ':authority': 'a',
    ...headers,
  }
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]),
  )
}

/** @returns undefined if the service closes the connection */
export async function startTls(connection: Socket): Promise<TLSSocket | undefined> {
  const trusted = { rejectUnauthorized: false, ALPNProtocols: ['h2'] }
  const socket = connect({ socket: connection, ...trusted })
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]).catch(() => undefined)
  return socket.destroyed ? undefined : socket
}
