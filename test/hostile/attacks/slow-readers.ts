/**
 * Readers that request every new segment and read a few bytes at intervals, so that it stays in memory for them.
 *
 * @module
 */
import type { Target } from '../target.ts'
import { openConnections, pause, readUpTo, untilClosed } from './raw-connection.ts'

export interface SlowReaders {
  readonly readers: number
  /** Path of a file that is larger than the kernel's buffers; called for each reader. */
  path(): string | Promise<string>
  /** Pipelined requests of each reader: the kernel's buffers hold the first reply. */
  readonly requestsEach: number
  readonly bytesEach: number
  readonly everyMs: number
  /** Time between two readers, in which a live stream goes on to other segments. */
  readonly apartMs: number
}

export interface SlowReadersFigures {
  readonly connected: number
  readonly readBytes: number
  readonly closedByService: number
}

/** Runs until the signal aborts or the service has closed every connection. */
export async function readSlowly(
  target: Target,
  signal: AbortSignal,
  {
    readers = 48,
    path,
    requestsEach = 1,
    bytesEach = 16 * 1024,
    everyMs = 20_000,
    apartMs = 0,
  }: Partial<SlowReaders> & Pick<SlowReaders, 'path'>,
): Promise<SlowReadersFigures> {
  const sockets = await openConnections(target, readers, signal)
  for (const socket of sockets) {
    const request = `GET ${await path()} HTTP/1.1\r\nHost: a\r\n\r\n`
    if (socket.writable) socket.write(request.repeat(requestsEach))
    if (apartMs > 0) await pause(apartMs, signal)
  }
  const act = (): void => {
    for (const socket of sockets) readUpTo(socket, bytesEach)
  }
  const isClosed = await untilClosed(sockets, signal, act, everyMs)
  const readBytes = sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  return {
    connected: sockets.length,
    readBytes,
    closedByService: isClosed ? sockets.length : 0,
  }
}
