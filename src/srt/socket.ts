/**
 * The UDP socket under listener and caller.
 *
 * @module
 */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'

/** At 40 Mbit/s a second and a half. Linux' default holds 92 full datagrams, which one pause of the process overruns. */
const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024

/** Opens a socket for numeric addresses of the same family as `address`; `::` takes both families. */
export function openSocket(address: string): Socket {
  const family = isIPv6(address) ? 6 : 4
  return createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    // Peers are known by numeric address. Node's own look-up would answer later, when the datagram may have changed
    // under it; answered at once, `send` has left before it returns.
    lookup: (hostname, _options, callback) => callback(null, hostname, family),
  })
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
