/**
 * Readers that ask for every new segment and take a few bytes of it now and then, so that it stays in memory for them.
 *
 * @module
 */
import type { Socket } from 'node:net'
import type { Target } from '../target.ts'
import { openConnections, untilClosed } from './raw-connection.ts'

export interface SlowReaders {
  readonly readers: number
  /** Path of a file that is larger than the kernel's buffers; asked anew for each reader. */
  path(): string | Promise<string>
  readonly bytesEach: number
  readonly everyMs: number
}

export interface SlowReadersFigures {
  readonly connected: number
  readonly readBytes: number
  readonly closedByService: number
}

/** Goes on until the signal says so, or the service has closed every connection. */
export async function readSlowly(
  target: Target,
  signal: AbortSignal,
  {
    readers = 48,
    path,
    bytesEach = 16 * 1024,
    everyMs = 20_000,
  }: Partial<SlowReaders> & Pick<SlowReaders, 'path'>,
): Promise<SlowReadersFigures> {
  const sockets = await openConnections(target, readers, signal)
  for (const socket of sockets) {
    if (socket.writable) socket.write(`GET ${await path()} HTTP/1.1\r\nHost: a\r\n\r\n`)
  }
  const act = (): void => {
    for (const socket of sockets) take(socket, bytesEach)
  }
  const isClosed = await untilClosed(sockets, signal, act, everyMs)
  const readBytes = sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  return {
    connected: sockets.length,
    readBytes,
    closedByService: isClosed ? sockets.length : 0,
  }
}

/** Takes so many bytes at most; the kernel's receive buffer fills up behind them. */
function take(socket: Socket, bytes: number): void {
  let left = bytes
  while (left > 0 && socket.readableLength > 0) {
    const chunk = socket.read(Math.min(left, socket.readableLength)) as Buffer | null
    if (chunk === null) return
    left -= chunk.length
  }
}
