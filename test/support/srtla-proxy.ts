/**
 * The SRTLA sender of `srtla-sender.ts` over real sockets: an SRT caller calls its port, and its packets leave over the
 * lines.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { SrtlaSender } from './srtla-sender.ts'

const HOST = '127.0.0.1'

interface Test {
  teardown(close: () => unknown): unknown
}

/**
 * @param ports  where each line sends to
 * @returns the sender, and the port for the caller
 */
export async function startSrtlaSender(t: Test, ports: readonly number[]) {
  const front = await open()
  const sockets = await Promise.all(ports.map(open))
  let callerPort = 0
  const nowUs = () => performance.now() * 1000
  const sender = new SrtlaSender(ports.length, randomBytes, {
    send: (line, datagram) => sockets[line]!.send(datagram, ports[line], HOST),
    deliver: (datagram) => front.send(datagram, callerPort, HOST),
  })
  front.on('message', (datagram, { port }) => {
    callerPort = port
    sender.handleCaller(datagram, nowUs())
  })
  sockets.forEach((socket, line) =>
    socket.on('message', (datagram) => sender.handleReceiver(line, datagram, nowUs())),
  )
  const ticker = setInterval(() => sender.tick(nowUs()), 10)
  t.teardown(() => {
    clearInterval(ticker)
    for (const socket of [front, ...sockets]) socket.close()
  })
  return { sender, port: front.address().port }
}

async function open(): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, HOST)
  await once(socket, 'listening')
  return socket
}
