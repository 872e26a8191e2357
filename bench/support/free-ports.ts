import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** Finds unused UDP ports on 127.0.0.1, for programs that cannot choose one themselves. */
export async function freePorts(count: number): Promise<number[]> {
  const sockets = Array.from({ length: count }, () => createSocket('udp4'))
  await Promise.all(
    sockets.map((socket) => {
      const listening = once(socket, 'listening')
      socket.bind(0, '127.0.0.1')
      return listening
    }),
  )
  const ports = sockets.map((socket) => socket.address().port)
  for (const socket of sockets) socket.close()
  return ports
}
