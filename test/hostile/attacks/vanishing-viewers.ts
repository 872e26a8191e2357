/**
 * Viewers that ask for media to come and leave without a word.
 *
 * @module
 */
import type { Target } from '../target.ts'
import { openConnections, pause } from './raw-connection.ts'

/**
 * Opens connections that request a file which makes them wait, and resets them when all of them do.
 *
 * @param isWaiting  whether the service holds that many requests
 * @returns number of connections that were opened
 */
export async function waitAndVanish(
  target: Target,
  signal: AbortSignal,
  {
    viewers = 1000,
    path,
    isWaiting,
  }: {
    readonly viewers?: number
    readonly path: string
    readonly isWaiting: (count: number) => boolean
  },
): Promise<number> {
  const sockets = await openConnections(target, viewers, signal)
  for (const socket of sockets) socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  while (!signal.aborted && !isWaiting(sockets.length)) await pause(20, signal)
  for (const socket of sockets) socket.resetAndDestroy()
  return sockets.length
}
