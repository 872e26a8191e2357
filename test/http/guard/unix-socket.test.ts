/**
 * Limits of connections over a Unix socket, which workers have to the ingest process: it cannot be reset.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { HttpGuard } from '../../../src/http/guard/http-guard.ts'
import { until } from '../../support/until.ts'

t.test('cuts an idle connection', async (t) => {
  let nowMs = 0
  const guard = new HttpGuard({
    limits: { maxConnections: 10, maxBufferedMib: 1 },
    clock: { nowUs: () => nowMs * 1000 },
    logger: pino({ level: 'silent' }),
  })
  const server = createServer({ ServerResponse: guard.ServerResponse })
  guard.protect(server)
  const path = join(t.testdir(), 'socket')
  server.listen(path)
  t.teardown(() => server.close())
  await once(server, 'listening')
  const client = connect(path)
  t.teardown(() => client.destroy())
  await until('the connection', () => guard.report().connections === 1)
  nowMs += 75_000
  await once(client.resume(), 'close')
  t.equal(guard.report().expired, 1)
})
