/**
 * The UDP sockets under listener and caller.
 *
 * @module
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { MillraceError } from '../../errors.ts'

/** At 40 Mbit/s a second and a half. Linux' default holds 92 full datagrams, which one pause of the process overruns. */
const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024

/** A port that is free at one address may be taken at another; then the next one that is free is tried, so many times. */
const FREE_PORT_ATTEMPTS = 10

/** Opens a socket for numeric addresses of the same family as `address`. */
export function openSocket(address: string, options: { readonly ipv6Only?: boolean } = {}): Socket {
  const family = isIPv6(address) ? 6 : 4
  return createSocket({
    ...options,
    type: family === 6 ? 'udp6' : 'udp4',
    // Peers are known by numeric address. Node's own look-up would answer later, when the datagram may have changed
    // under it; answered at once, `send` has left before it returns.
    lookup: (hostname, _options, callback) => callback(null, hostname, family),
  })
}

/**
 * Binds a socket to each address, all of them to one port; for `::` two, for there IPv4 has a socket of its own. What is
 * sent from a socket comes from the address that it is bound to.
 *
 * @param addresses  numeric
 * @param port  0 for any that is free at all of them
 * @returns in the order of the addresses
 * @throws {MillraceError} `ADDRESS_IN_USE`; whatever is thrown, no socket stays open
 */
export async function bindSockets(addresses: readonly string[], port: number): Promise<Socket[]> {
  for (let attempt = 1; ; attempt++) {
    const sockets: Socket[] = []
    try {
      for (const address of addresses) {
        const socket = await bindSocket(address, sockets[0]?.address().port ?? port)
        sockets.push(socket)
        const bound = socket.address()
        if (bound.address === '::') sockets.push(await bindSocket('0.0.0.0', bound.port))
      }
      return sockets
    } catch (error) {
      for (const socket of sockets) socket.close()
      const isTaken = error instanceof MillraceError && error.code === 'ADDRESS_IN_USE'
      if (!isTaken || port !== 0 || attempt === FREE_PORT_ATTEMPTS) throw error
    }
  }
}

async function bindSocket(address: string, port: number): Promise<Socket> {
  // A socket for both families would name IPv4 peers `::ffff:192.0.2.1`, which every comparison had to know.
  const socket = openSocket(address, { ipv6Only: isIPv6(address) })
  try {
    const listening = once(socket, 'listening')
    socket.bind(port, address)
    await listening
    return socket
  } catch (cause) {
    socket.close()
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause
    throw new MillraceError('ADDRESS_IN_USE', {
      message: `UDP port ${port} on ${address} is in use: choose another port for SRT`,
      cause,
    })
  }
}

/**
 * Asks the kernel for a large receive buffer.
 *
 * @param socket  bound
 * @returns what to tell the operator where the kernel grants less
 */
export function enlargeReceiveBuffer(socket: Socket): string | undefined {
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES)
  } catch {
    // Where the system refuses instead of clamping, what it has stays.
  }
  // Linux doubles what it grants, for its own bookkeeping (socket(7)).
  const doubled = process.platform === 'linux' ? 2 : 1
  const granted = socket.getRecvBufferSize() / doubled
  if (granted >= RECEIVE_BUFFER_BYTES) return undefined
  return (
    `the kernel limits the UDP receive buffer to ${granted} bytes; bursts may be lost. ` +
    `Allow ${RECEIVE_BUFFER_BYTES}: sysctl -w net.core.rmem_max=${RECEIVE_BUFFER_BYTES}`
  )
}
