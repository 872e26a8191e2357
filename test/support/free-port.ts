import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** Finds an unused UDP port on 127.0.0.1, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}
