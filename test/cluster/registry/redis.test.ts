import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Redis } from '../../../src/cluster/registry/redis.ts'
import { findMaster } from '../../../src/cluster/registry/sentinels.ts'
import { connectTo } from './connect-to.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const UNAVAILABLE = { code: 'REGISTRY_UNAVAILABLE', httpStatus: 503, retryAfterSec: 1 }

t.test('a server that hangs costs a command its time limit, and is given up', async (t) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('data', (data) => {
      const text = String(data)
      if (text.includes('SELECT') || text.includes('CLIENT')) socket.write('+OK\r\n')
      if (text.includes('SETRANGE')) socket.write(':0\r\n')
    })
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  const { redis, events, isReady } = connectTo(t, `redis://127.0.0.1:${port}`, { timeoutMs: 50 })
  await isReady()
  const command = () => redis.command(['GET', 'x'])
  await t.rejects(command(), { ...UNAVAILABLE, cause: { message: /50 ms/ } })
  await until('a second connection', async () => {
    await command().catch(() => undefined)
    return sockets.size > 1 && redis.isReady
  })
  t.strictSame(events.slice(0, 3), ['ready', 'lost', 'ready'])
})

t.test('of Sentinels that name different masters the newest configuration counts', async (t) => {
  const replies: Record<string, readonly unknown[]> = {
    a: [
      ['10.0.0.1', '6379'],
      ['name', 'main', 'config-epoch', '3'],
    ],
    b: [
      ['10.0.0.2', '6379'],
      ['name', 'main', 'config-epoch', '4'],
    ],
    unknowing: [null, null],
  }
  const addresses = ['a', 'away', 'b', 'unknowing'].map((host) => ({ host, port: 1 }))
  const askEach = async ({ host }: { host: string }) => {
    if (host === 'away') throw new Error('away')
    return replies[host] ?? []
  }
  const newest = { host: '10.0.0.2', port: 6379, epoch: 4 }
  t.strictSame(await findMaster(addresses, 'main', askEach), newest)
  await t.rejects(findMaster(addresses.slice(1, 2), 'main', askEach), {
    message: 'no Sentinel answers: away',
  })
  await t.rejects(findMaster(addresses.slice(3), 'main', askEach), { message: /does not know/ })
})

t.test('the wait for a connection ends when garbage is collected meanwhile', async (t) => {
  const { redis } = connectTo(t, `redis://127.0.0.1:${await freePort()}`)
  const collector = setInterval(collectGarbage, 20)
  t.teardown(() => clearInterval(collector))
  await t.rejects(redis.ready(200), UNAVAILABLE)
})

t.test('close ends the attempts to connect', async (t) => {
  const redis = new Redis({ url: `redis://127.0.0.1:${await freePort()}` })
  redis.connect()
  await redis.close()
  t.equal(redis.isReady, false)
  await t.rejects(redis.command(['PING']), UNAVAILABLE)
})
