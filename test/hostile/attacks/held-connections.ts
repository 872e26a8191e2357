/**
 * Connections that are held for as long as the service lets them, and that its end must not wait for.
 *
 * @module
 */
import type { Socket } from 'node:net'
import type { Target } from '../target.ts'
import { openConnections, untilClosed } from './raw-connection.ts'

/** Behavior of the client of a held connection. */
export const HELD_KINDS = {
  /** Sends nothing. */
  silent: () => undefined,
  /** Sends one request and reads its reply, as a paused player. */
  paused: (socket: Socket, turn: number) => {
    if (turn === 0) socket.write('GET /watch/x HTTP/1.1\r\nHost: a\r\n\r\n')
  },
  /** Sends half of a request's head. */
  'half-sent': (socket: Socket) => void socket.write('GET /watch/x HTTP/1.1\r\nHos'),
  /** Sends a header, one byte each time. */
  dribbling: (socket: Socket, turn: number) =>
    void socket.write(turn === 0 ? 'GET /watch/x HTTP/1.1\r\nHost: a\r\nX: ' : 'x'),
  /** Sends line ends between requests, which are no request (RFC 9112 section 2.2). */
  blank: (socket: Socket, turn: number) =>
    void socket.write(turn === 0 ? 'GET /watch/x HTTP/1.1\r\nHost: a\r\n\r\n' : '\r\n'),
  /** Announces a body and sends a byte of it each time. */
  'half-posted': (socket: Socket, turn: number) =>
    void socket.write(
      turn === 0
        ? 'POST /api/status HTTP/1.1\r\nHost: a\r\nLT-SIGNATURE: 00\r\nContent-Length: 9999\r\n\r\n'
        : 'x',
    ),
  /** Requests large files and reads nothing. */
  'never-reading': (socket: Socket, turn: number) => {
    const request = 'GET /watch/assets/hls.min.js HTTP/1.1\r\nHost: a\r\n\r\n'
    if (turn === 0) socket.write(request.repeat(40))
  },
} satisfies Record<string, (socket: Socket, turn: number) => void>

export type HeldKind = keyof typeof HELD_KINDS

export interface HeldConnectionsFigures {
  readonly connected: number
  /** Reading clients that got a reply before the service closed the connection. */
  readonly answered: number
  readonly closedByService: number
}

/** Opens as many of each kind, and continues until the signal aborts or the service has closed all of them. */
export async function holdConnections(
  target: Target,
  signal: AbortSignal,
  {
    each = 100,
    kinds = Object.keys(HELD_KINDS) as HeldKind[],
    everyMs = 5000,
  }: {
    readonly each?: number
    readonly kinds?: readonly HeldKind[]
    readonly everyMs?: number
  } = {},
): Promise<HeldConnectionsFigures> {
  const sockets = await openConnections(target, each * kinds.length, signal)
  const kindOf = (index: number): HeldKind => kinds[index % kinds.length]!
  const reading = sockets.filter((_, index) => kindOf(index) !== 'never-reading')
  for (const socket of reading) socket.resume()
  const act = (turn: number): void => {
    for (const [index, socket] of sockets.entries()) {
      if (socket.writable) HELD_KINDS[kindOf(index)](socket, turn)
    }
  }
  const isClosed = await untilClosed(reading, signal, act, everyMs)
  return {
    connected: sockets.length,
    answered: reading.filter(({ bytesRead }) => bytesRead > 0).length,
    closedByService: isClosed ? reading.length : 0,
  }
}

/** Opens connections of one kind, by default more than the service takes. */
export function holdIdleConnections(
  target: Target,
  signal: AbortSignal,
  {
    connections = 10_000,
    kind = 'silent',
  }: { readonly connections?: number; readonly kind?: HeldKind } = {},
): Promise<HeldConnectionsFigures> {
  return holdConnections(target, signal, { each: connections, kinds: [kind] })
}
