import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect as connectHttp2, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import {
  connect,
  createServer as createNetServer,
  type AddressInfo,
  type Server as NetServer,
  type Socket,
} from 'node:net'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import {
  acceptedBytes,
  stopReading,
  takeListener,
  tcpSocketOf,
} from '../../../src/http/guard/node-insides.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { until } from '../../support/until.ts'

/** More than the buffers of the kernel at both ends hold. */
const LARGE = Buffer.alloc(32 * 1024 * 1024)

t.test("Node's listener of a server is the only one, and serves what it is given", async (t) => {
  const server = createServer(answer)
  const serve = takeListener(server, 'connection')
  server.on('connection', (socket: Socket) => serve.call(server, socket))
  const port = await listen(t, server)
  const response = await fetch(`http://127.0.0.1:${port}`)
  t.equal(await response.text(), 'answered')
})

t.test('the parser of a connection gets only what is handed to it', async (t) => {
  const server = createServer(answer)
  server.on('connection', (socket: Socket) => {
    const parse = takeListener(socket, 'data')
    socket.on('data', (bytes: Buffer) =>
      parse(Buffer.from(String(bytes).replace('/first', '/then'))),
    )
  })
  const port = await listen(t, server)
  const response = await fetch(`http://127.0.0.1:${port}/first`)
  t.equal(response.headers.get('path'), '/then')
})

t.test('over TLS, for HTTP/1.1 and HTTP/2', async (t) => {
  const certificate = makeCertificate()
  const server = createSecureServer({ ...certificate, allowHTTP1: true }, (request, response) => {
    answer(request as unknown as IncomingMessage, response as unknown as ServerResponse)
  })
  const serve = takeListener(server, 'secureConnection')
  const below: unknown[] = []
  server.on('secureConnection', (secure: TLSSocket) => {
    below.push(tcpSocketOf(secure)?.remotePort)
    serve.call(server, secure)
  })
  const serveStream = takeListener(server, 'stream')
  let streams = 0
  server.on('stream', (stream: ServerHttp2Stream, ...head: unknown[]) => {
    streams++
    below.push(tcpSocketOf(stream.session?.socket)?.remotePort)
    serveStream.call(server, stream, ...head)
  })
  const port = await listen(t, server)
  const client = connectHttp2(`https://localhost:${port}`, { ca: certificate.cert })
  t.teardown(() => client.destroy())
  let body = ''
  const request = client.request({ ':path': '/' }).setEncoding('utf8')
  request.on('data', (text: string) => (body += text))
  await once(request, 'end')
  t.equal(body, 'answered')
  t.equal(streams, 1)
  const { localPort } = client.socket
  t.strictSame(below, [localPort, localPort], 'the TCP socket below both')
})

t.test('refuses to take one of two listeners, or none', (t) => {
  const server = createServer(answer)
  t.throws(() => takeListener(server, 'nothing'), /expected one listener for 'nothing', got 0/)
  server.on('connection', () => undefined)
  t.throws(() => takeListener(server, 'connection'), /got 2/)
  t.end()
})

t.test('counts what the kernel has accepted of one large write', async (t) => {
  const [peer, socket] = await connectPair(t)
  peer.pause()
  socket.write(LARGE)
  await until('some of it', () => acceptedBytes(socket) > 0)
  t.ok(acceptedBytes(socket) < LARGE.length)
  t.equal(socket.bytesWritten, LARGE.length, 'which is what Node tells')
  peer.resume()
  await until('all of it', () => acceptedBytes(socket) === LARGE.length)
  socket.destroy()
  await once(socket, 'close')
  t.equal(acceptedBytes(socket), 0, 'of a socket that has closed')
  t.equal(tcpSocketOf(socket), undefined)
})

t.test('reads no more', async (t) => {
  const [peer, socket] = await connectPair(t)
  const read: string[] = []
  socket.on('data', (bytes: Buffer) => read.push(String(bytes)))
  await pass(peer, 'first')
  // What another connection got later was read later.
  const [otherPeer, other] = await connectPair(t)
  const roundTrip = async () => {
    await pass(otherPeer, 'mark')
    await once(other, 'data')
  }
  await roundTrip()
  t.strictSame(read, ['first'])
  stopReading(socket)
  await pass(peer, 'second')
  await roundTrip()
  t.strictSame(read, ['first'])
  socket.destroy()
  await once(socket, 'close')
  t.doesNotThrow(() => stopReading(socket))
})

function answer(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('path', request.url!)
  response.end('answered')
}

async function listen(t: Test, server: NetServer): Promise<number> {
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** @returns both ends of a TCP connection */
async function connectPair(t: Test): Promise<[Socket, Socket]> {
  const server = createNetServer()
  const peer = connect(await listen(t, server), '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [Socket]
  for (const end of [peer, socket]) {
    end.on('error', () => undefined)
    t.teardown(() => end.destroy())
  }
  return [peer, socket]
}

/** Resolves when the kernel has the text. */
async function pass(socket: Socket, text: string): Promise<void> {
  await new Promise((resolve) => socket.write(text, resolve))
}
