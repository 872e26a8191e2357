/**
 * UDP sockets of listeners and callers.
 *
 * @module
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { SrtError } from '../srt-error.ts'
import type { Datagram } from '../transmitter.ts'

/** Receive buffer for 1.5 s at 40 Mbit/s. The Linux default of 92 full datagrams overflows if the process pauses. */
export const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024

/** Bound of what waits in memory when an interface is slower than what is sent. */
const MAX_QUEUE_BYTES = 4 * 1024 * 1024

/** Max number of attempts to find a port that is free on every address. */
const FREE_PORT_ATTEMPTS = 10

interface BindOptions {
  /** Whether sockets of other processes may have the port, too, see `canReusePort`; default false. */
  readonly reusePort?: boolean | undefined
}

/** Whether a version of Node.js knows `reusePort` of UDP sockets: 22.12 and later ones of 22, and from 23.1 on. */
export function canReusePort(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
}

/** Opens a socket of the address family of `address`. It can only bind and send to numeric addresses. */
export function openSocket(
  address: string,
  options: BindOptions & { readonly ipv6Only?: boolean } = {},
): Socket {
  const family = isIPv6(address) ? 6 : 4
  return createSocket({
    ...options,
    type: family === 6 ? 'udp6' : 'udp4',
    // Node's own lookup is asynchronous: `send` would transmit later, when the datagram may have changed. With this
    // synchronous lookup of numeric addresses, `send` has transmitted the datagram when it returns.
    lookup: (hostname, _options, callback) => callback(null, hostname, family),
  })
}

/**
 * Binds a socket to each address, all on one port; for `::`, one socket for IPv6 and one for IPv4. Unless the address
 * is a wildcard, it is the source address of the datagrams sent.
 *
 * @param addresses  numeric
 * @param port  0 for any port that is free on every address
 * @returns sockets in the order of the addresses
 * @throws {SrtError} `ADDRESS_IN_USE`; after any exception, no socket is open
 */
export async function bindSockets(
  addresses: readonly string[],
  port: number,
  options: BindOptions = {},
): Promise<Socket[]> {
  for (let attempt = 1; ; attempt++) {
    const sockets: Socket[] = []
    try {
      for (const address of addresses) {
        const socket = await bindSocket(address, sockets[0]?.address().port ?? port, options)
        sockets.push(socket)
        const bound = socket.address()
        if (bound.address === '::') sockets.push(await bindSocket('0.0.0.0', bound.port, options))
      }
      return sockets
    } catch (error) {
      for (const socket of sockets) socket.close()
      const isTaken = error instanceof SrtError && error.code === 'ADDRESS_IN_USE'
      if (!isTaken || port !== 0 || attempt === FREE_PORT_ATTEMPTS) throw error
    }
  }
}

async function bindSocket(address: string, port: number, options: BindOptions): Promise<Socket> {
  // A dual-stack socket reports IPv4 peers as `::ffff:192.0.2.1`, which every comparison would have to handle.
  const socket = openSocket(address, { ...options, ipv6Only: isIPv6(address) })
  try {
    const listening = once(socket, 'listening')
    socket.bind(port, address)
    await listening
    return socket
  } catch (cause) {
    socket.close()
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause
    const message = `UDP port ${port} on ${address} is in use: choose another port for SRT`
    throw new SrtError('ADDRESS_IN_USE', message, { cause })
  }
}

/**
 * Transmits a datagram, unless more than `MAX_QUEUE_BYTES` wait for the network: then it is lost, as in a router.
 *
 * @param port  of the peer, whose address follows; undefined for a connected socket
 */
export function transmit(
  socket: Socket,
  datagram: Datagram,
  port?: number,
  address?: string,
): void {
  if (socket.getSendQueueSize() < MAX_QUEUE_BYTES) socket.send(datagram, port, address)
}

/**
 * Requests a receive buffer of `RECEIVE_BUFFER_BYTES`.
 *
 * @param socket  bound
 * @returns size granted, in bytes, if the kernel grants less; else undefined
 */
export function enlargeReceiveBuffer(socket: Socket): number | undefined {
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES)
  } catch {
    // Some systems throw instead of granting less; the size stays as it was.
  }
  // Linux reports twice the usable size, for its own bookkeeping (socket(7)).
  const doubled = process.platform === 'linux' ? 2 : 1
  const granted = socket.getRecvBufferSize() / doubled
  return granted < RECEIVE_BUFFER_BYTES ? granted : undefined
}
