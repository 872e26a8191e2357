/**
 * What the guard needs of Node and finds in no documentation; `test/http/guard/node-insides.test.ts` fails where a version
 * of Node has moved it. Why the documented ways do not do:
 *
 * - `takeListener`: a listener of ours beside that of Node cannot keep a connection from it. Connections that another
 *   server admits and emits at this one, as the documentation allows, have no time limit: Node checks those of servers
 *   that listen.
 * - `acceptedBytes`: `bytesWritten` and `writableLength` move by whole segments.
 * - `stopReading`: HTTP/2 reads below the socket, which `pause` does not reach.
 * - `tcpSocketOf`: a TLS socket has no public name for the one below it.
 *
 * @module
 */
import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'

/**
 * Takes away the listener that Node has added by itself, so that the caller decides what it gets: of a server for
 * `connection`, `secureConnection` or `stream`, or of a connection for `data`, which is Node's HTTP parser.
 *
 * @throws {Error}  if it is not the only one: the caller would take another one, or would leave one
 */
export function takeListener(
  emitter: EventEmitter,
  event: string,
): (this: unknown, ...args: unknown[]) => void {
  const [listener, ...others] = emitter.listeners(event)
  if (listener === undefined || others.length > 0) {
    throw new Error(`expected one listener for '${event}', got ${emitter.listenerCount(event)}`)
  }
  const taken = listener as (...args: unknown[]) => void
  emitter.off(event, taken)
  return taken
}

/** Bytes that the kernel has accepted, encrypted ones with TLS. */
export function acceptedBytes(socket: Socket): number {
  const handle = handleOf(socket)
  return handle === null ? 0 : handle.bytesWritten - handle.writeQueueSize
}

/** Reads no more of a socket that is about to close; libuv would read up to 2 MiB at once. */
export function stopReading(socket: Socket): void {
  handleOf(socket)?.readStop()
}

/** TCP socket below a TLS socket; undefined for any other object. */
export function tcpSocketOf(socket: object | undefined): Socket | undefined {
  const { _parent: parent } = (socket ?? {}) as { _parent?: Socket | null }
  return parent ?? undefined
}

interface StreamHandle {
  /** Bytes written to the handle, including bytes that wait in its queue. */
  readonly bytesWritten: number
  /** Bytes that the kernel has not accepted yet. */
  readonly writeQueueSize: number
  readStop(): void
}

/** @returns null for a socket that has closed */
function handleOf(socket: Socket): StreamHandle | null {
  const { _handle: handle } = socket as unknown as { readonly _handle: StreamHandle | null }
  return handle
}
