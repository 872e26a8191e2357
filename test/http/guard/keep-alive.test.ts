/**
 * Keep-alive time of a connection whose requests Node does not see: it closes idle connections only.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { HttpGuard } from '../../../src/http/guard/http-guard.ts'
import { until } from '../../support/until.ts'
import { MemoryService } from '../memory-service.ts'

/** More than the buffers of the kernel hold for one connection. */
const LONG_BYTES = 24 * 1024 * 1024

const REQUEST = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n'

t.test('the keep-alive time ends an idle client, but none that takes nothing', async (t) => {
  const guard = new HttpGuard({
    limits: { maxConnections: 10, maxBufferedMib: 64 },
    playback: new MemoryService(),
    clock: { nowUs: () => 0 },
    logger: pino({ level: 'silent' }),
  })
  const { ServerResponse, repeated } = guard
  const server = createServer({ ServerResponse, keepAliveTimeout: 50 })
  guard.protect(server)
  repeated.answerWith((request) => {
    const body = [Buffer.alloc(LONG_BYTES)]
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${LONG_BYTES}\r\n\r\n`
    repeated.createReply(request).send(head, { body, sizeBytes: LONG_BYTES })
    return true
  })
  server.listen(0, '127.0.0.1')
  t.teardown(() => guard.destroy())
  t.teardown(() => server.close())
  await once(server, 'listening')

  const ask = async () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
    t.teardown(() => client.destroy())
    client.write(REQUEST)
    const [{ socket }, reply] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
    return { client, socket, reply }
  }
  const idle = await ask()
  idle.reply.end()
  await once(idle.socket, 'timeout')
  t.ok(idle.socket.destroyed)
  const silent = await ask()
  silent.client.write(REQUEST)
  await until('the next request', () => silent.socket.readableLength > 0)
  silent.reply.end()
  await once(silent.socket, 'timeout')
  t.notOk(silent.socket.destroyed)
  t.equal(guard.report().connections, 1)
})
