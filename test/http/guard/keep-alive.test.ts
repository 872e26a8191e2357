/**
 * Keep-alive time of a guarded connection: it closes idle connections only.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { HttpGuard } from '../../../src/http/guard/http-guard.ts'

const KEEP_ALIVE_MS = 50

/** More than the buffers of the kernel hold for one connection. */
const LONG_BYTES = 24 * 1024 * 1024

t.test('the keep-alive time ends an idle client, but none that takes nothing', async (t) => {
  const guard = new HttpGuard({
    limits: { maxConnections: 10, maxBufferedMib: 64 },
    clock: { nowUs: () => 0 },
    logger: pino({ level: 'silent' }),
  })
  const { ServerResponse } = guard
  const server = createServer({ ServerResponse, keepAliveTimeout: KEEP_ALIVE_MS })
  guard.protect(server)
  server.listen(0, '127.0.0.1')
  t.teardown(() => guard.destroy())
  t.teardown(() => server.close())
  await once(server, 'listening')

  const ask = async () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
    t.teardown(() => client.destroy())
    client.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\n')
    const [{ socket }, response] = (await once(server, 'request')) as [
      IncomingMessage,
      ServerResponse,
    ]
    return { socket, response }
  }
  const silent = await ask()
  silent.response.end(Buffer.alloc(LONG_BYTES))
  // The second begins when the first is over, so the silent one has had the time of each, and more.
  for (let clients = 0; clients < 2; clients++) {
    const idle = await ask()
    idle.response.end()
    await once(idle.socket, 'close')
  }
  t.notOk(silent.socket.destroyed)
  t.equal(guard.report().connections, 1)
})
