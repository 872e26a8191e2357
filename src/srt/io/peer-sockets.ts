/**
 * Sockets of the peers of a listener that shares its port: one for each peer, connected to it.
 *
 * Whenever a process opens or closes the port, the kernel deals the datagrams of all unconnected sockets anew, and a connection
 * would get no more of its own. A connected socket keeps those of its peer (Linux; on other systems, too, it does no harm).
 *
 * @module
 */
import type { Socket } from 'node:dgram'
import { isIPv6, type AddressInfo } from 'node:net'
import { enlargeReceiveBuffer, openSocket } from './socket.ts'

interface PeerSocket {
  readonly socket: Socket
  /** Number of connections of the peer. */
  users: number
  isBound: boolean
}

interface PeerSocketsOptions {
  /** Address of the listener. */
  readonly local: AddressInfo
  /** Takes what arrives: as long as a socket is not connected yet, from any peer. */
  readonly onMessage: (datagram: Buffer, peer: { address: string; port: number }) => void
  /** Called where a socket does not open: the peer is served by the listener's. */
  readonly onError: (error: Error) => void
}

export class PeerSockets {
  readonly #options: PeerSocketsOptions
  readonly #peers = new Map<string, PeerSocket>()

  constructor(options: PeerSocketsOptions) {
    this.#options = options
  }

  /** Local addresses of the sockets: those that the kernel has chosen, where the listener's is a wildcard. */
  get addresses(): AddressInfo[] {
    const bound = [...this.#peers.values()].filter(({ isBound }) => isBound)
    return bound.map(({ socket }) => socket.address())
  }

  open(port: number, address: string): void {
    const { local, onMessage, onError } = this.#options
    const key = `${address} ${port}`
    const known = this.#peers.get(key)
    if (known !== undefined) {
      known.users++
      return
    }
    const socket = openSocket(address, { reusePort: true, ipv6Only: isIPv6(address) })
    const peer: PeerSocket = { socket, users: 1, isBound: false }
    this.#peers.set(key, peer)
    socket.on('message', onMessage)
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // The peer has gone, as an ICMP message tells connected sockets alone: its connection ends by its own rules.
      if (error.syscall !== 'recvmsg') onError(error)
    })
    socket.bind(local.port, local.address, () => {
      peer.isBound = true
      enlargeReceiveBuffer(socket)
      socket.connect(port, address)
    })
  }

  close(port: number, address: string): void {
    const key = `${address} ${port}`
    const peer = this.#peers.get(key)
    if (peer !== undefined && --peer.users === 0) this.#close(key, peer.socket)
  }

  closeAll(): void {
    for (const [key, { socket }] of this.#peers) this.#close(key, socket)
  }

  #close(key: string, socket: Socket): void {
    this.#peers.delete(key)
    socket.close()
  }
}
