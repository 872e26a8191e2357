/**
 * Connections of attackers: bytes go out as they stand, and nothing that happens to one is an error.
 *
 * @module
 */
import { once, setMaxListeners } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from '../target.ts'

/** A batch is connected before the next is begun, so that the backlog of the listening socket holds them. */
const BATCH = 100

/**
 * Opens connections that read nothing until they are resumed; all of them are destroyed when the signal aborts.
 *
 * @returns those that could be opened; the service may have closed some of them again
 */
export async function openConnections(
  { host, httpPort }: Target,
  count: number,
  signal: AbortSignal,
): Promise<Socket[]> {
  const sockets: Socket[] = []
  setMaxListeners(0, signal)
  for (let opened = 0; opened < count && !signal.aborted; opened += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, count - opened) }, () =>
      openConnection(httpPort, host, signal),
    )
    for (const socket of await Promise.all(batch)) if (socket !== undefined) sockets.push(socket)
  }
  return sockets
}

/**
 * Waits until the signal aborts, or the service has closed every connection; a socket that reads nothing never notices.
 *
 * @param act  what the attacker does meanwhile, at once and then each `everyMs`; turns count from 0
 * @returns whether the service closed them
 */
export async function untilClosed(
  sockets: readonly Socket[],
  signal: AbortSignal,
  act: (turn: number) => void = () => undefined,
  everyMs = Infinity,
): Promise<boolean> {
  const startMs = performance.now()
  for (let turn = 0; !signal.aborted && sockets.some(({ closed }) => !closed);) {
    if (performance.now() - startMs >= turn * everyMs || turn === 0) act(turn++)
    await pause(100, signal)
  }
  return !signal.aborted
}

/**
 * Reads at most `bytes`; the rest stays in the kernel's receive buffer, which fills up.
 *
 * @returns bytes read
 */
export function readUpTo(socket: Socket, bytes: number): number {
  let left = bytes
  while (left > 0 && socket.readableLength > 0) {
    const chunk = socket.read(Math.min(left, socket.readableLength)) as Buffer | null
    if (chunk === null) break
    left -= chunk.length
  }
  return bytes - left
}

/** Sleeps; the signal wakes it. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

export async function openConnection(
  port: number,
  host: string,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const socket = connect({ port, host })
  socket.on('error', () => undefined)
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  return socket.destroyed ? undefined : socket
}
