import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** A UDP port on 127.0.0.1 that nobody uses at the moment, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}
